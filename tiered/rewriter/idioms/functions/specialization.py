"""Local functions for calls whose attributes or operands are constants."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import onnx

from tiered.graph.core.marks import is_left_alone
from tiered.graph.io.export import export_function
from tiered.rewriter.idioms.functions.outlining import KEPT
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Function, Graph, Model, Node, Tensor

LARGEST: Final = 1024
"""Constants of more bytes stay operands: each copy of a function would have its own."""

MOST: Final = 1000
"""The most functions that are made: nested calls may have exponentially many constants."""

Constants = Mapping[int, "Tensor"]
Attributes = Mapping[str, onnx.AttributeProto]


class Specializer:
    """Gives calls with constant attributes or operands a function that has them inside.

    Calls with equal constants share a function.

    Args:
        model: the model, which is edited.
        on_skip: called with a call that stays, and the reason.
        parameters_only: bind the attributes alone, and with them the defaults of those that a call
            leaves out, of functions that refer to some.
    """

    def __init__(
        self,
        model: Model,
        on_skip: Callable[[Node, Skip], None],
        *,
        parameters_only: bool = False,
    ) -> None:
        self.model, self.on_skip = model, on_skip
        self.parameters_only = parameters_only
        self._made: dict[tuple[object, ...], Function] = {}
        self._names = {(each.domain, each.function_name) for each in model.functions}

    def run(self) -> None:
        """Go from the main graph to what it calls, and remove functions that no call is left of."""
        former: dict[Function, None] = {}
        pending: deque[Graph] = deque([self.model.main])
        seen: set[Graph] = set(pending)
        while pending:
            root = pending.popleft()
            for node in list(root.walk()):
                function = self.model.function(*node.callee)
                if function is None:
                    continue
                new = self._specialize(node, function)
                if new is not None:
                    former[function] = None
                callee = new or function
                if callee not in seen:
                    seen.add(callee)
                    pending.append(callee)
        while uncalled := [each for each in former if not self._is_called(each)]:
            for function in uncalled:
                self.model.remove(function)
                del former[function]

    def _is_called(self, function: Function) -> bool:
        domain, name, _ = function.id
        calls = (node for graph in self.model.graphs() for node in graph.nodes_of(name, domain))
        return any(node.callee == function.id for node in calls)

    def _specialize(self, node: Node, function: Function) -> Function | None:
        """Return the new function of a call; None if the call stays."""
        constants, attributes = self._given(node, function)
        graph, key = node.owner, (function, *_key(constants, attributes))
        reason = self._refusal(node, function, is_given=bool(constants or attributes))
        if reason is None and key not in self._made and len(self._made) >= MOST:
            reason = Skip("{} functions were made, more are not", MOST)
        if reason is not None:
            self.on_skip(node, reason)
            return None
        with graph.rewrite("a call with constants => a call of a special function", node):
            if key not in self._made:
                name = self._free(function)
                self._made[key] = self.model.add(_bound(function, name, constants, attributes))
            _redirect(graph, node, self._made[key], constants, attributes)
        return self._made[key]

    def _given(self, node: Node, function: Function) -> tuple[Constants, Attributes]:
        """Return the constant operands and the attributes of a call."""
        if not self.parameters_only:
            return _constants(node), _attributes(node)
        if not any(inner.has_references for inner in function.walk()):
            return {}, {}
        own = {proto.name for proto in node.proto.attribute}
        defaults = {name: each for name, each in function.defaults.items() if name not in own}
        return {}, {**_attributes(node), **defaults}

    def _refusal(self, node: Node, function: Function, *, is_given: bool) -> Skip | None:
        """Return why a call stays; None if it may get a function of its own."""
        if not is_given:
            return Skip("no attribute or operand is constant")
        if KEPT in node.metadata or is_left_alone(node.owner) or is_left_alone(function):
            return Skip("the call or its function is marked")
        return None

    def _free(self, function: Function) -> str:
        number = 1
        while (function.domain, f"{function.function_name}_{number}") in self._names:
            number += 1
        name = f"{function.function_name}_{number}"
        self._names.add((function.domain, name))
        return name


def _constants(node: Node) -> dict[int, Tensor]:
    return {
        at: value.tensor
        for at, value in enumerate(node.inputs)
        if value is not None and value.tensor is not None
        if value.tensor.nbytes <= LARGEST and not value.tensor.is_sparse
    }


def _attributes(node: Node) -> dict[str, onnx.AttributeProto]:
    return {proto.name: proto for proto in node.proto.attribute if not proto.ref_attr_name}


def _key(constants: Constants, attributes: Attributes) -> Iterator[object]:
    yield tuple((at, tensor.key()) for at, tensor in constants.items())
    for name in sorted(attributes):
        yield attributes[name].SerializeToString(deterministic=True)


def _bound(
    function: Function, name: str, constants: Constants, attributes: Attributes
) -> onnx.FunctionProto:
    """Return a copy of a function with constants in place of some inputs and attributes."""
    proto = export_function(function)
    proto.name = name
    inputs = list(proto.input)
    del proto.input[:]
    proto.input.extend(each for at, each in enumerate(inputs) if at not in constants)
    held = list(proto.node)
    del proto.node[:]
    for at, tensor in constants.items():
        node = proto.node.add(op_type="Constant", output=[inputs[at]])
        value = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
        value.t.CopyFrom(tensor.embedded(""))
    if constants and "" not in {entry.domain for entry in proto.opset_import}:
        proto.opset_import.add(domain="", version=function.model.opset())
    proto.node.extend(held)
    _bind(proto.node, attributes)
    free = [each for each in proto.attribute if each not in attributes]
    defaults = [each for each in proto.attribute_proto if each.name not in attributes]
    del proto.attribute[:], proto.attribute_proto[:]
    proto.attribute.extend(free)
    proto.attribute_proto.extend(defaults)
    return proto


def _bind(nodes: Collection[onnx.NodeProto], attributes: Attributes) -> None:
    """Replace references to attributes by their values, in bodies too."""
    for node in nodes:
        for attribute in node.attribute:
            given = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else None
            if given is not None:
                name = attribute.name
                attribute.CopyFrom(given)
                attribute.name = name
            elif attribute.HasField("g"):
                _bind(attribute.g.node, attributes)
            for body in attribute.graphs:
                _bind(body.node, attributes)


def _redirect(
    graph: Graph,
    node: Node,
    function: Function,
    constants: Constants,
    attributes: Attributes,
) -> None:
    inputs = [value for at, value in enumerate(node.inputs) if at not in constants]
    graph.set_inputs(node, inputs)
    for name in attributes:
        if name in node.attributes:
            graph.set_attribute(node, name, None)
    graph.set_operator(node, function.function_name, function.domain)
