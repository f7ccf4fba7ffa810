"""The primitives that edit nodes: each keeps NodeProto, links, networkx and journal in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tiered.errors import ModelError
from tiered.graph import links
from tiered.graph.journal import Edit
from tiered.graph.node import Node, domain_of
from tiered.graph.schema import encode_attribute, schema_of
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph


def add_node(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Value | None],
    outputs: int | Sequence[str] = 1,
    attributes: Mapping[str, Any] | None = None,
    *,
    domain: str = "",
    name: str | None = None,
    bodies: Iterable[str] = (),
) -> Node:
    """Add a node; `outputs` is their number, or their names ("" for an absent one).

    `bodies` are the attributes that hold its bodies: these are empty, and are filled by their
    own primitives.

    Raises:
        ModelError: an input is not visible here, or an output name is taken.
    """
    proto = onnx.NodeProto(op_type=op_type, domain=domain)
    proto.name = graph.model.node_names.fresh(name or op_type)
    schema = schema_of(op_type, domain_of(domain), graph.opset(domain_of(domain)))
    for key, attribute in (attributes or {}).items():
        proto.attribute.append(encode_attribute(key, attribute, schema))
    bodies = tuple(bodies)
    for key in bodies:
        proto.attribute.add(name=key, type=onnx.AttributeProto.GRAPH)
    return graph._insert(proto, inputs, outputs, bodies)


def insert(
    graph: Graph,
    proto: onnx.NodeProto,
    inputs: Sequence[Value | None],
    outputs: int | Sequence[str],
    bodies: Iterable[str] = (),
) -> Node:
    """Add a node of which the proto says everything but operands and bodies."""
    model = graph.model
    node = Node(model.next_serial(), graph, proto)
    node.bodies = tuple(graph._new_body(node, attribute) for attribute in bodies)
    for value in inputs:
        if value is not None and not graph.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {graph.name!r}")
        proto.input.append("" if value is None else value.name)
    node._inputs.extend(inputs)
    if isinstance(outputs, int):
        outputs = [""] * outputs
        for index in range(len(outputs)):
            outputs[index] = model.names.fresh(f"{proto.name}_output_{index}")
            graph._new_output(node, index, outputs[index])
    else:
        for index, output in enumerate(outputs):
            if output and output in graph._values:
                raise ModelError(f"graph {graph.name!r} has a value {output!r} already")
            graph._new_output(node, index, output)
    proto.output.extend(outputs)
    graph._attach(node)
    graph._log(Edit.ADD_NODE, node)
    return node

def new_output(graph: Graph, node: Node, index: int, name: str) -> None:
    if not name:
        node._outputs.append(None)
        return
    value = Value(graph.model.next_serial(), graph, name)
    value.producer, value.index = node, index
    value._type = NOT_INFERRED
    node._outputs.append(value)


def remove_node(graph: Graph, node: Node) -> None:
    """Remove a node that nobody reads; its bodies go with it.

    Raises:
        ModelError: an output is still read, or is a graph output.
    """
    for value in node._outputs:
        if value is not None and value.is_used:
            raise ModelError(f"node {node.label!r} cannot be removed: {value.name!r} is used")
    graph._log(Edit.REMOVE_NODE, node, graph)
    graph._detach(node)


def attach(graph: Graph, node: Node) -> None:
    """Enter a node into everything that knows the nodes of the graph."""
    node.graph = graph
    graph._nodes[node.id] = node
    graph._by_op.setdefault((node.domain, node.op_type), {})[node.id] = node
    if node.bodies:
        graph._owners[node.id] = node
    if node.proto.name:
        graph.model.node_names.take(node.proto.name)
    for value in node._outputs:
        if value is not None:
            graph._enter(value)
    graph._order = None
    if graph._dag is not None:
        graph._dag.add_node(node)
    links.link_inputs(node)
    links.link_bodies(node)


def detach(graph: Graph, node: Node) -> None:
    links.unlink_bodies(node)
    links.unlink_inputs(node)
    if graph._dag is not None:
        graph._dag.remove_node(node)
    graph._order = None
    for value in node._outputs:
        if value is not None:
            graph._leave(value)
    if node.proto.name:
        graph.model.node_names.release(node.proto.name)
    del graph._by_op[node.domain, node.op_type][node.id]
    del graph._nodes[node.id]
    graph._owners.pop(node.id, None)
    node.graph = None


def enter(graph: Graph, value: Value) -> None:
    value.graph = graph
    graph._values[value.name] = value
    graph.model.names.take(value.name)


def leave(graph: Graph, value: Value) -> None:
    value.graph = None
    del graph._values[value.name]
    graph.model.names.release(value.name)


def set_input(graph: Graph, node: Node, index: int, value: Value | None) -> None:
    """Make input `index` read another value; None leaves it absent."""
    before = node._inputs[index]
    if before is value:
        return
    _check_visible(node, value)
    graph._log(Edit.SET_INPUT, node, index, before, value)
    graph._write_input(node, index, value)


def _check_visible(node: Node, value: Value | None) -> None:
    if value is None or value.graph is node.graph:
        return
    if not node.owner.sees(value):
        raise ModelError(f"node {node.label!r} cannot read {value!r}, which it does not see")


def write_input(graph: Graph, node: Node, index: int, value: Value | None) -> None:
    before = node._inputs[index]
    if before is not None:
        links.drop_use(before, node, index)
    node._inputs[index] = value
    if value is None:
        node.proto.input[index] = ""
    else:
        node.proto.input[index] = value.name
        links.add_use(value, node, index)
    assert node.graph is not None
    node.graph._order = None


def set_inputs(graph: Graph, node: Node, inputs: Sequence[Value | None]) -> None:
    """Give the node other inputs, also more or fewer of them."""
    for value in inputs:
        _check_visible(node, value)
    graph._log(Edit.SET_INPUTS, node, list(node._inputs), node.proto)
    proto = _copy(node.proto)
    del proto.input[:]
    proto.input.extend("" if value is None else value.name for value in inputs)
    graph._write_inputs(node, list(inputs), proto)


def write_inputs(
    graph: Graph, node: Node, inputs: list[Value | None], proto: onnx.NodeProto
) -> None:
    links.unlink_inputs(node)
    node._inputs = inputs
    node.proto = proto
    node.forget_attributes()
    links.link_inputs(node)
    assert node.graph is not None
    node.graph._order = None


def drop_outputs(graph: Graph, node: Node, indices: Iterable[int]) -> None:
    """Make unused outputs absent; those at the end are cut off.

    Raises:
        ModelError: one of them is still read.
    """
    outputs = list(node._outputs)
    for index in indices:
        value = outputs[index]
        if value is not None and value.is_used:
            raise ModelError(f"output {value.name!r} of node {node.label!r} is used")
        outputs[index] = None
    while outputs and outputs[-1] is None:
        outputs.pop()
    graph._log(Edit.SET_OUTPUTS, node, list(node._outputs), node.proto)
    proto = _copy(node.proto)
    del proto.output[:]
    proto.output.extend("" if value is None else value.name for value in outputs)
    graph._write_outputs(node, outputs, proto)


def write_outputs(
    graph: Graph, node: Node, outputs: list[Value | None], proto: onnx.NodeProto
) -> None:
    for value in node._outputs:
        if value is not None and value not in outputs:
            graph._leave(value)
    for value in outputs:
        if value is not None and value.graph is None:
            graph._enter(value)
    node._outputs = outputs
    node.proto = proto
    node.forget_attributes()


def set_attribute(graph: Graph, node: Node, name: str, value: Any) -> None:
    """Write an attribute; None removes it."""
    proto = _copy(node.proto)
    for index, attribute in enumerate(proto.attribute):
        if attribute.name == name:
            del proto.attribute[index]
            break
    if value is not None:
        proto.attribute.append(encode_attribute(name, value, node.schema))
    graph._set_proto(node, proto)


def set_metadata(graph: Graph, node: Node, entries: Mapping[str, str]) -> None:
    """Write the node's metadata_props."""
    proto = _copy(node.proto)
    del proto.metadata_props[:]
    for key, text in entries.items():
        proto.metadata_props.add(key=key, value=text)
    graph._set_proto(node, proto)


def set_proto(graph: Graph, node: Node, proto: onnx.NodeProto) -> None:
    graph._log(Edit.SET_PROTO, node, node.proto)
    node.proto = proto
    node.forget_attributes()


def rename_node(graph: Graph, node: Node, name: str) -> None:
    """Give the node another name."""
    if node.proto.name == name:
        return
    graph._log(Edit.RENAME_NODE, node, node.proto)
    proto = _copy(node.proto)
    proto.name = name
    graph._write_named(node, proto)


def write_named(graph: Graph, node: Node, proto: onnx.NodeProto) -> None:
    names = graph.model.node_names
    if node.proto.name:
        names.release(node.proto.name)
    node.proto = proto
    node.forget_attributes()
    if proto.name:
        names.take(proto.name)


def move_node(graph: Graph, node: Node, target: Graph) -> None:
    """Move a node into another graph, which sees all it reads and is seen by its users."""
    graph._log(Edit.MOVE_NODE, node, node.owner)
    graph._write_graph(node, target)


def write_graph(graph: Graph, node: Node, target: Graph) -> None:
    uses = [(value, use) for value in node._outputs if value is not None for use in value.users]
    outputs = [(value, of) for value in node._outputs if value for of in value.output_of]
    for value, use in uses:
        links.drop_use(value, use.node, use.slot)
    for value, of in outputs:
        links.drop_output_use(value, of)
    node.owner._detach(node)
    target._attach(node)
    for value, of in outputs:
        links.add_output_use(value, of)
    for value, use in uses:
        links.add_use(value, use.node, use.slot)


def _copy(proto: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    return copy
