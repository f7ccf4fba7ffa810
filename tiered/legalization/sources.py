"""The sources of legalizations: the target's table, registered rules, ONNX's function bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, get_args

import onnx

from tiered.errors import ModelError, UsageError
from tiered.graph import Function, Model, Node
from tiered.graph.opset.same_meaning import why_not_at
from tiered.graph.queries.function_body import EXACT_BODIES, function_body, has_function_body
from tiered.passes.registry import registry
from tiered.rewriter import Rule, Skip, rewrite_node
from tiered.support.numerics import Numerics

if TYPE_CHECKING:
    from tiered.backends import Backend
    from tiered.graph import Value


class Source(Protocol):
    """One way to express a node by other operators."""

    @property
    def name(self) -> str:
        """The name of the source in reasons."""
        ...

    @property
    def numerics(self) -> Numerics:
        """The class of what it makes."""
        ...

    def apply(self, node: Node) -> Skip | None:
        """Replace a node; a Skip is the reason why not, and the caller undoes what was begun."""


def sources_of(node: Node, backend: Backend, maps: tuple[str, ...]) -> Iterator[Source]:
    """Yield the ways to express a node, in the order to try them.

    Args:
        node: a node that the target refuses.
        backend: the target.
        maps: the names of the maps of registered legalizations.
    """
    for key in backend.substitutes_of(node):
        yield Substitution(*key)
    for info in _registered(node, maps):
        if info.numerics_option:
            option = next(each for each in info.options if each.name == info.numerics_option)
            for choice in get_args(option.type):
                yield RegisteredRule(info.name, Numerics(choice), option.name)
        else:
            yield RegisteredRule(info.name, info.numerics)
    if has_function_body(node):
        yield FunctionBody(
            Numerics.EXACT if node.op_type in EXACT_BODIES else Numerics.REASSOCIATING
        )


def _registered(node: Node, maps: tuple[str, ...]) -> Iterator[Any]:
    """Yield the infos of the legalizations that name the operator of a node, by their names."""
    wanted = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    for name in registry.legalizations():
        info = registry.named(name).info
        if info.legalizes in maps and wanted in info.acts_on:
            yield info


class RegisteredRule(NamedTuple):
    """A rewrite pass that is declared with `legalizes`."""

    name: str
    numerics: Numerics
    option: str = ""
    """The option of the pass that chooses the class, if it has one."""

    def apply(self, node: Node) -> Skip | None:
        """Apply the rule of the pass at the node."""
        found: Any = registry.named(self.name)
        if self.option:
            found = found.with_options(**{self.option: str(self.numerics)})
        rule: Rule = found.rule
        if (node.domain, node.op_type) not in rule.keys:
            return Skip("the operator is not the root of its pattern")
        return rewrite_node(rule, node, found.options)


class FunctionBody(NamedTuple):
    """The function body that ONNX defines the operator by."""

    numerics: Numerics
    name: str = "the function body"

    def apply(self, node: Node) -> Skip | None:
        """Replace the node by its function body, in the opset of the graph."""
        graph, model = node.owner, node.owner.model
        assert isinstance(model, Model)
        try:
            function = model.add(function_body(node))
        except ModelError as error:
            return Skip("{}", error)
        for inner in function.walk():
            own, there = function.opset(inner.domain), graph.opset(inner.domain)
            reason = why_not_at(inner, own, there) if there else None
            if reason is not None:
                return Skip("its body has {}, which {}", inner.op_type, reason)
        graph.inline_call(node, function, {})
        model.remove(function)
        return None


class Substitution(NamedTuple):
    """An operator that the target's own table names instead."""

    domain: str
    op_type: str
    numerics: Numerics = Numerics.EXACT

    @property
    def name(self) -> str:
        """The operator as text."""
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type

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


def legalize_by(node: Node, name: str) -> Skip | None:
    """Replace a node by the rule of a pass that is declared with `legalizes`, whatever the target.

    Args:
        node: the node.
        name: the pass.

    Returns:
        Why the rule leaves the node as it is; None if it was replaced.

    Raises:
        UsageError: the pass is not declared with `legalizes`.
    """
    info = registry.named(name).info
    if not info.legalizes:
        raise UsageError(
            f"{info.name} is not a legalization; {', '.join(registry.legalizations())} are"
        )
    model = node.owner.model
    mark = model.mark()
    declined = RegisteredRule(info.name, info.numerics).apply(node)
    if declined is not None:
        model.undo_to(mark)
    return declined


def substitute(node: Node, domain: str, name: str) -> Sequence[Value | None] | Skip:
    """Return the outputs of another operator of a node's operands and attributes.

    A custom operator is the call of a local function that holds the operator of the node: the
    target runs its own kernel, and every other runtime the function. The node itself stays, for
    the rule that returns these outputs.

    Args:
        node: the node that the target refuses.
        domain, name: the other operator; it has the inputs, attributes and outputs of the node's.
    """
    graph, model, root = node.owner, node.owner.model, node.owner.root
    if isinstance(root, Function) and root.id[:2] == (domain, name):
        return Skip("it is the body of {}::{}", domain, name)
    if node.bodies or node.has_references:
        return Skip("the node has bodies or attributes of a call")
    if domain and model.ir_version < _FUNCTIONS_SINCE:
        return Skip("before IR {} there are no local functions", _FUNCTIONS_SINCE)
    assert isinstance(model, Model)
    if domain and model.function(domain, name) is None:
        model.add(_wrapper(node, domain, name))
    attributes: Mapping[str, Any] = node.attributes
    new = graph.add_node(
        name, node.inputs, len(node.outputs), attributes, domain=domain, name=node.name or name
    )
    for own, other in zip(node.outputs, new.outputs, strict=True):
        if own is not None and other is not None and own.type is not None:
            graph.set_type(other, own.type)
    return new.outputs


_FUNCTIONS_SINCE: Final = 8
"""The first IR version with local functions."""


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
    if node.owner.model.ir_version >= _METADATA_SINCE:
        function.metadata_props.add(key="tiered.keep", value="the target has this operator")
    return function


_METADATA_SINCE: Final = 10
_VARIADIC: Final = 1 << 16


def _most_inputs(node: Node) -> int:
    """Return the number of operands of an operator that is not variadic, else 0."""
    most = 0 if node.schema is None else node.schema.max_input
    return most if most < _VARIADIC else 0
