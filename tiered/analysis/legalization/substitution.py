"""Substitutes: the operators that a target's own table names, as calls that every runtime runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import onnx

from tiered.graph import Function, Model, Node
from tiered.graph.edits.outline import FUNCTIONS_SINCE, OVERLOADS_SINCE
from tiered.rewriter import Skip
from tiered.support.numerics import Numerics
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.graph import Value

_VARIADIC: Final = 1 << 16


class Substitution(NamedTuple):
    """An operator that the target's own table names instead."""

    domain: str
    op_type: str
    numerics: Numerics = Numerics.EXACT

    @property
    def name(self) -> str:
        """The operator as text."""
        return operator_name(self.domain, self.op_type)

    def apply(self, node: Node) -> Skip | None:
        """Call the other operator with the operands and attributes of the node.

        A custom operator is a call of a local function that holds the operator of the node, so
        that every runtime can run it.
        """
        made = substitute(node, self.domain, self.op_type)
        if isinstance(made, Skip):
            return made
        node.owner.replace(node, made)
        return None


def substitute(node: Node, domain: str, name: str) -> Sequence[Value | None] | Skip:
    """Return the outputs of another operator of a node's operands and attributes.

    A custom operator is the call of a local function that holds the operator of the node: the
    target runs its own kernel, and every other runtime the function. If the name has another body
    already, for another operator or another number of operands, the call is of an overload. The
    node itself stays, for the rule that returns these outputs.

    Args:
        node: the node that the target refuses.
        domain, name: the other operator; it has the inputs, attributes and outputs of the node's.
    """
    graph, model, root = node.owner, node.owner.model, node.owner.root
    assert isinstance(model, Model)
    if isinstance(root, Function) and root.id[:2] == (domain, name):
        return Skip("it is the body of {}::{}", domain, name)
    if node.bodies or node.has_references:
        return Skip("the node has bodies or attributes of a call")
    if domain and model.ir_version < FUNCTIONS_SINCE:
        return Skip("before IR 8 there are no local functions: tiered convert --ir 8")
    overload = _overload(node, domain, name) if domain else ""
    if overload is None:
        return Skip("{}::{} has another body; overloads need IR {}", domain, name, OVERLOADS_SINCE)
    attributes: Mapping[str, Any] = node.attributes
    function = model.function(domain, name, overload)
    # onnx.reference wants an operand, present or absent, for each input of a function.
    count = len(node.inputs) if function is None else len(function.inputs)
    new = graph.add_node(
        name,
        [*node.inputs, *[None] * (count - len(node.inputs))],
        len(node.outputs),
        attributes,
        domain=domain,
        name=node.name or name,
        overload=overload,
    )
    for own, other in zip(node.outputs, new.outputs, strict=True):
        if own is not None and other is not None and own.type is not None:
            graph.set_type(other, own.type)
    return new.outputs


def _overload(node: Node, domain: str, name: str) -> str | None:
    """Return the overload of the function that holds a node's operator; None if none can be added.

    It is the function itself ("") unless that has another body.
    """
    model, wrapper = node.owner.model, _wrapper(node, domain, name)
    assert isinstance(model, Model)
    shape = f"{len(wrapper.input)}_{len(wrapper.output)}"
    for overload in ("", f"{node.op_type}_{shape}"):
        function = model.function(domain, name, overload)
        if function is None:
            if overload and model.ir_version < OVERLOADS_SINCE:
                return None
            wrapper.overload = overload
            model.add(wrapper)
            return overload
        if _is_body(function, wrapper):
            return overload
    return None


def _is_body(function: Function, wrapper: onnx.FunctionProto) -> bool:
    """Return whether a function of the model holds the operator that a wrapper holds."""
    (wanted,) = wrapper.node
    inner = next(iter(function.nodes), None)
    return (
        inner is not None
        and len(function.nodes) == 1
        and (inner.op_type, inner.domain) == (wanted.op_type, wanted.domain)
        and inner.inputs == function.inputs
        and inner.outputs == function.outputs
        and (len(inner.inputs), len(inner.outputs)) == (len(wanted.input), len(wanted.output))
        and {(each.name, each.ref_attr_name) for each in inner.proto.attribute}
        == {(each.name, each.ref_attr_name) for each in wanted.attribute}
    )


def _wrapper(node: Node, domain: str, name: str) -> onnx.FunctionProto:
    """Return a function of an operator's operands and attributes that holds the operator."""
    schema = node.schema
    inputs = [f"x{at}" for at in range(max(len(node.inputs), _most_inputs(node)))]
    outputs = [f"y{at}" for at in range(len(node.outputs))]
    inner = onnx.helper.make_node(node.op_type, inputs, outputs, domain=node.domain)
    attributes = [] if schema is None else list(schema.attributes.values())
    for attribute in attributes:
        declared: Any = attribute.type
        kind = onnx.AttributeProto.AttributeType.Value(declared.name)
        inner.attribute.add(name=attribute.name, ref_attr_name=attribute.name, type=kind)
    opsets = [onnx.helper.make_opsetid(node.domain, node.owner.opset(node.domain))]
    names = [attribute.name for attribute in attributes]
    function = onnx.helper.make_function(domain, name, inputs, outputs, [inner], opsets, names)
    if node.owner.model.ir_version >= OVERLOADS_SINCE:  # metadata came with overloads
        function.metadata_props.add(key="tiered.keep", value="the target has this operator")
    return function


def _most_inputs(node: Node) -> int:
    """Return the number of operands of an operator that is not variadic, else 0."""
    most = 0 if node.schema is None else node.schema.max_input
    return most if most < _VARIADIC else 0
