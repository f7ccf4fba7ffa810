"""Inlining of bodies and functions, and copies of nodes into other graphs.

All of it uses the primitives, so that it is journalled and undone like any edit. A name is kept if
it is free, and made fresh otherwise: no name may shadow one of an outer graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Final

import onnx

from tiered.graph.core.types import read_type, without_symbols
from tiered.graph.core.value import Value
from tiered.graph.edits.nodes import enter, insert
from tiered.graph.edits.transactions import check_node, undone_on_error
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Function, Graph
    from tiered.graph.core.node import Node

Stands = MutableMapping[Value, "Value | None"]
"""The value in the copy for each value of the original; None if it is absent in the copy."""

SharedConstants = MutableMapping["tuple[Node, Graph]", Value]
"""The shared constant by Constant node of a function and root of the graph that reads it."""

LONGEST_PREFIX: Final = 200
"""Longer names of calls are not used as prefixes of the inlined nodes."""

SHARED_BYTES: Final = 1024
"""Constants of functions with more bytes are not copied for each call."""


@undone_on_error
def dissolve(graph: Graph, node: Node, body: Graph) -> list[Node]:
    """Replace a node by the nodes of one of its bodies; return those nodes.

    Names that are taken are made fresh; the outputs take over the names of the node's outputs.

    Raises:
        ModelError: the body has inputs, or quantization annotations of its values.
    """
    check_node(graph, node)
    assert body in node.bodies
    if body.inputs or body.annotations:
        raise ModelError(f"body {body.name!r} has inputs or annotations, and cannot be dissolved")
    nodes, outputs = _move_out(body, graph), body.outputs
    for each in node.bodies:
        # Otherwise the captured values could not be renamed.
        each.set_graph_outputs([], [])
    graph.splice(node, outputs, [output for each in nodes for output in each.outputs])
    return nodes


def _move_out(body: Graph, graph: Graph) -> list[Node]:
    model = graph.model
    for value in body.initializers:
        _make_unique(value)
        if graph.root.is_function or model.ir_version < 4:
            assert value.default is not None
            body.replace_uses(value, graph.constant(value.default, value.name))
            body.remove_constant(value)
        else:
            body.move_constant(value, graph)
    nodes = list(body.topological_order())
    for node in nodes:
        for output in node.outputs:
            if output is not None:
                _make_unique(output)
        if not model.node_names.is_unique(node.name):
            graph.rename_node(node, model.node_names.fresh(node.name))
        body.move_node(node, graph)
    stated = {value for value, _ in body.declarations}
    # The types of an unknown operator are only declared.
    carried = [
        (output, output.declared)
        for node in nodes
        for output in node.outputs
        if output is not None and (output in stated or node.schema is None)
        if output.declared is not None
    ]
    if carried:
        known = {value for value, _ in graph.declarations}
        new = [(value, info) for value, info in carried if value not in known]
        graph.set_declarations(new, keep=len(graph.declarations))
    return nodes


def _make_unique(value: Value) -> None:
    names = value.owner.model.names
    if not names.is_unique(value.name):
        value.owner.rename_value(value, names.fresh(value.name))


@undone_on_error
def inline_call(
    graph: Graph, node: Node, function: Function, shared: SharedConstants
) -> list[Node]:
    """Replace a call of a local function by the function's body; return the new nodes.

    Names become `call/name`. Attribute references get the attribute of the call, else the
    function's default; without either they are dropped. All calls share one copy of each large
    constant, in the root graph. The caller ensures that the opsets agree, and that no output is an
    absent input.

    Args:
        graph: the graph of the call.
        node: the call.
        function: the called function.
        shared: the large constants copied so far; updated for the next call.
    """
    check_node(graph, node)
    root, model = graph.root, graph.model
    for domain, version in _new_imports(function, root).items():
        model.set_opset(domain, version, root)
    given = {proto.name: proto for proto in node.proto.attribute}
    attributes = {**function.defaults, **given}
    stands: Stands = {value: node.input(at) for at, value in enumerate(function.inputs)}
    nodes = copied_nodes(function)
    for inner in function.topological_order():
        tensor = inner.constant_tensor() if _is_shared(inner) else None
        if tensor is None:
            continue
        constant = shared.get((inner, root))
        if constant is None or constant.graph is None:
            name = f"{function.function_name}/{inner.output.name}"
            constant = shared[inner, root] = root.constant(tensor, name)
        stands[inner.output] = constant
    # Deeply nested calls would make names longer than the code.
    prefix = node.name if 0 < len(node.name) <= LONGEST_PREFIX else function.function_name
    copies = graph.copy_nodes(nodes, stands, prefix=prefix, attributes=attributes)
    own = [output for copy in copies for output in copy.outputs]
    graph.splice(node, [stands[value] for value in function.outputs], own)
    graph.prune(reversed(copies))
    return copies


def copied_nodes(function: Function) -> list[Node]:
    """Return the nodes of a function that `inline_call` copies, in the order of the copies."""
    return [node for node in function.topological_order() if not _is_shared(node)]


def _is_shared(node: Node) -> bool:
    """Return whether all calls share one copy of the constant that a node holds."""
    tensor = node.constant_tensor() if node.op_type == "Constant" else None
    return tensor is not None and tensor.nbytes > SHARED_BYTES


@undone_on_error
def copy_nodes(
    graph: Graph,
    nodes: Iterable[Node],
    stands: Stands,
    *,
    prefix: str = "",
    attributes: Mapping[str, onnx.AttributeProto] | None = None,
) -> list[Node]:
    """Copy nodes of any graph, with their bodies, into this one.

    Args:
        graph: the graph that gets the copies.
        nodes: producers first.
        stands: the value here for each value that the nodes read, None for an absent one; the
            outputs of the copies are added. A value without an entry is read itself.
        prefix: the prefix of all names: `prefix/name`.
        attributes: the attributes for attribute references, by name; without an entry the attribute
            is absent. None keeps the references.

    Raises:
        ModelError: an output of a body would be absent, a value is not visible here, or the graph
            is nested in one of the nodes.
    """
    nodes = list(nodes)
    around = graph.parent_node
    while around is not None:
        if around in nodes:
            raise ModelError(f"node {around.label!r} cannot be copied into a body of its own")
        around = around.owner.parent_node
    copier = _Copier(stands, prefix, attributes)
    copies = [copier.copy(node, graph) for node in nodes]
    if copier.declared:
        graph.set_declarations(copier.declared, keep=len(graph.declarations))
    return copies


class _Copier:
    def __init__(
        self,
        stands: Stands,
        prefix: str,
        attributes: Mapping[str, onnx.AttributeProto] | None,
    ) -> None:
        self.stands = stands
        self.prefix = prefix
        self.attributes = attributes
        self.declared: list[tuple[Value, onnx.ValueInfoProto]] = []

    def copy(self, node: Node, graph: Graph) -> Node:
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        del proto.input[:], proto.output[:]
        self._bind(proto)
        names, outputs = graph.model.node_names, self._fresh(graph, node.outputs)
        proto.name = names.fresh(self._named(node.name or node.op_type))
        inputs = [None if value is None else self._read(value) for value in node.inputs]
        while inputs and inputs[-1] is None and node.inputs[len(inputs) - 1] is not None:
            inputs.pop()
        copy = insert(graph, proto, inputs, outputs, [body.attribute for body in node.bodies])
        for value, new in zip(node.outputs, copy.outputs, strict=True):
            if value is not None and new is not None:
                self._stand(value, new)
        for source, body in zip(node.bodies, copy.bodies, strict=True):
            self._fill(body, source)
        return copy

    def _fill(self, body: Graph, source: Graph) -> None:
        """Copy the content of another body into a new body."""
        assert isinstance(body.skeleton, onnx.GraphProto)
        assert isinstance(source.skeleton, onnx.GraphProto)
        body.skeleton.CopyFrom(source.skeleton)
        model, outer = body.model, self.declared
        self.declared = []
        for value in source.initializers:
            assert value.default is not None
            name = model.names.fresh(self._named(value.name))
            self._stand(value, body.add_constant(value.default, name))
        infos = [without_symbols(info) for info in source.input_infos]
        for value, info in zip(source.inputs, infos, strict=True):
            if not value.is_initializer:
                new = Value(model.next_serial(), None, model.names.fresh(self._named(value.name)))
                new._type = read_type(info.type)
                enter(body, new)
                self._stand(value, new)
        body.set_graph_inputs([self._known(value) for value in source.inputs], infos)
        for node in source.topological_order():
            self.copy(node, body)
        infos = [without_symbols(info) for info in source.output_infos]
        body.set_graph_outputs([self._known(value) for value in source.outputs], infos)
        body.set_declarations(self.declared)
        self.declared = outer
        for value in (*source.inputs, *source.outputs) if source.names_matter else ():
            name = source.file_names.get(value.name, value.name)
            if value.graph is source:
                body.keep_file_name(self._known(value), name)

    def _bind(self, proto: onnx.NodeProto) -> None:
        """Replace the attribute references by attributes."""
        if self.attributes is None:
            return
        for index in reversed(range(len(proto.attribute))):
            attribute = proto.attribute[index]
            if not attribute.ref_attr_name:
                continue
            name, given = attribute.name, self.attributes.get(attribute.ref_attr_name)
            if given is None:
                del proto.attribute[index]
            else:
                attribute.CopyFrom(given)
                attribute.name = name

    def _fresh(self, graph: Graph, values: Iterable[Value | None]) -> list[str]:
        names, found = graph.model.names, []
        for value in values:
            found.append("" if value is None else names.fresh(self._named(value.name)))
            if value is not None:
                names.take(found[-1])
        for name in found:
            if name:
                names.release(name)
        return found

    def _named(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def _stand(self, value: Value, new: Value) -> None:
        self.stands[value] = new
        if value.declared is not None and value.producer is not None and not value.output_of:
            self.declared.append((new, without_symbols(value.declared)))

    def _read(self, value: Value) -> Value | None:
        return self.stands.get(value, value)

    def _known(self, value: Value) -> Value:
        found = self._read(value)
        if found is None:
            raise ModelError(f"{value.name!r} is absent, but it is an input or output of a body")
        return found


def _new_imports(function: Function, root: Graph) -> dict[str, int]:
    """Return the domains that a graph must also import to contain the nodes of a function."""
    return {
        node.domain: function.opset(node.domain)
        for node in function.walk()
        if not root.opset(node.domain)
    }
