"""The primitives that edit nodes: each keeps NodeProto, links, networkx and journal in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tiered.errors import ModelError
from tiered.graph import links
from tiered.graph.journal import Edit
from tiered.graph.names import check_free
from tiered.graph.node import Node, domain_of
from tiered.graph.schema import encode_attribute, schema_of
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph


def add_node(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Value | None],
    outputs: int | Sequence[str | Value] = 1,
    attributes: Mapping[str, Any] | None = None,
    *,
    domain: str = "",
    name: str | None = None,
    bodies: Iterable[str] = (),
) -> Node:
    """Add a node; `outputs` is their number, or their names ("" for an absent one).

    A detached value among the outputs enters the graph as that output.

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
    outputs: int | Sequence[str | Value],
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
        names = model.names
        outputs = [names.fresh(f"{proto.name}_output_{index}") for index in range(outputs)]
    node._outputs += _new_outputs(node, outputs)
    proto.output.extend("" if value is None else value.name for value in node._outputs)
    # First of all: it raises where nobody may edit.
    graph._log(Edit.ADD_NODE, node)
    graph._attach(node)
    return node

def _new_outputs(node: Node, outputs: Sequence[str | Value]) -> list[Value | None]:
    """Return the values that a node computes: new ones of these names, and detached ones."""
    graph, values = node.owner, list[Value | None]()
    for index, output in enumerate(outputs):
        if not output:
            values.append(None)
            continue
        if isinstance(output, str):
            value = Value(graph.model.next_serial(), graph, output)
            value._type = NOT_INFERRED
        else:
            value = output
            _check_detached(value, node)
        check_free(graph, value.name)
        value.producer, value.index = node, index
        values.append(value)
    return values


def append_node(graph: Graph, node: Node) -> None:
    """Put back a node that was removed, with the operands that it had.

    Raises:
        ModelError: it is in a graph, reads what is not visible here, or a name is taken.
    """
    if node.graph is not None:
        raise ModelError(f"node {node.label!r} is in graph {node.graph.name!r} already")
    if node.bodies or (node.name and node.name in graph.model.node_names):
        raise ModelError(f"node {node.label!r} has bodies, or its name is taken")
    for value in node._inputs:
        if value is not None and not graph.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {graph.name!r}")
    for value in node._outputs:
        if value is not None:
            check_free(graph, value.name)
    graph._attach(node)
    graph._log(Edit.ADD_NODE, node)


def _check_detached(value: Value, node: Node) -> None:
    """Hold a value that a node will compute against having another source."""
    if value.graph is not None or value._tensor is not None:
        raise ModelError(f"{value!r} has a source already: {node.label!r} cannot be it")
    if value._type is None:
        # Nobody could tell while it was in no graph.
        value._type = NOT_INFERRED


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
        outputs[index] = None
    while outputs and outputs[-1] is None:
        outputs.pop()
    graph.set_outputs(node, outputs)


def set_outputs(graph: Graph, node: Node, outputs: Sequence[Value | None]) -> None:
    """Give the node other outputs: its own at their places, detached values at new ones, or None.

    Raises:
        ModelError: one that goes is still read, or one that comes has another source or place.
    """
    before, after = node._outputs, list(outputs)
    for value in before:
        if value is not None and value not in after and value.is_used:
            raise ModelError(f"output {value.name!r} of node {node.label!r} is used")
    for index, value in enumerate(after):
        if value is None or (index < len(before) and before[index] is value):
            continue
        _check_detached(value, node)
        check_free(graph, value.name)
    if after == before:
        return
    graph._log(Edit.SET_OUTPUTS, node, before, node.proto)
    proto = _copy(node.proto)
    del proto.output[:]
    proto.output.extend("" if value is None else value.name for value in after)
    graph._write_outputs(node, after, proto)


def write_outputs(
    graph: Graph, node: Node, outputs: list[Value | None], proto: onnx.NodeProto
) -> None:
    for value in node._outputs:
        if value is not None and value not in outputs:
            graph._leave(value)
            value.producer = None
    for index, value in enumerate(outputs):
        if value is not None and value.graph is None:
            value.producer, value.index = node, index
            graph._enter(value)
    node._outputs = outputs
    node.proto = proto
    node.forget_attributes()


def exchange_outputs(graph: Graph, one: Node, index: int, other: Node, place: int) -> None:
    """Let two nodes of the graph swap an output: users, names and types stay with the values."""
    for node, at in ((one, index), (other, place)):
        if node.graph is not graph or node._outputs[at] is None:
            raise ModelError(f"node {node.label!r} has no output {at} to exchange")
    if one._outputs[index] is other._outputs[place]:
        return
    graph._log(Edit.EXCHANGE_OUTPUTS, one, index, other, place)
    graph._write_exchanged(one, index, other, place)


def write_exchanged(graph: Graph, one: Node, index: int, other: Node, place: int) -> None:
    first, second = one._outputs[index], other._outputs[place]
    assert first is not None
    assert second is not None
    with links.unlinked(first, second):
        for node, at, value in ((one, index, second), (other, place, first)):
            node._outputs[at] = value
            node.proto.output[at] = value.name
            value.producer, value.index = node, at
    graph._order = None


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
    """Move a node into another graph, which sees all it reads and is seen by its users.

    Raises:
        ModelError: it does not see all of it, a user would not see the node, or a name is taken.
    """
    around: Graph | None = target
    while around is not None:
        if around.owner is node:
            raise ModelError(f"node {node.label!r} cannot be moved into a body of its own")
        around = around.parent
    for value in (*node._inputs, *node.captured):
        if value is not None and not target.sees(value):
            raise ModelError(f"{value!r} is not visible in graph {target.name!r}")
    for value in node._outputs:
        if value is not None:
            check_move(value, target)
    graph._log(Edit.MOVE_NODE, node, node.owner)
    node.owner._write_graph(node, target)


def check_move(value: Value, target: Graph) -> None:
    """Hold a value that moves into another graph against who reads it, and against names there.

    Raises:
        ModelError: a user would not see it, or the name is taken there.
    """
    check_free(target, value.name, value)
    for graph in (*(user.owner for user in value._users.values()), *value.output_of):
        if not graph.is_within(target):
            raise ModelError(f"{value!r} is read in {graph!r}, which does not see {target!r}")


def write_graph(graph: Graph, node: Node, target: Graph) -> None:
    with links.unlinked(*(value for value in node._outputs if value is not None)):
        graph._detach(node)
        target._attach(node)


def _copy(proto: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    return copy
