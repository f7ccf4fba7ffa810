"""The primitives that edit a NodeProto: operands, outputs, attributes, name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tiered.graph.core import use_lists
from tiered.graph.core.edit import Edit
from tiered.graph.core.node import domain_of
from tiered.graph.core.schema import Schema, attributes_of, encode_attribute, schema_of
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.edits.invalidate import invalidate_elements
from tiered.graph.edits.nodes import check_detached, check_distinct, enter, leave
from tiered.graph.edits.transactions import (
    check_free,
    check_node,
    check_node_within,
    check_place,
    undone_on_error,
)
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node


def set_input(graph: Graph, node: Node, index: int, value: Value | None) -> None:
    """Make input `index` read another value; None leaves it absent.

    Raises:
        ModelError: the node has no such input, or does not see the value.
    """
    check_node_within(graph, node)
    check_place(node, index, "input")
    before = node._inputs[index]
    if before is value:
        return
    if value is not None:
        _check_visible(node, value)
    graph._log(Edit.SET_INPUT, node, index, before, value)
    write_input(node, index, value)
    invalidate_elements(node, before, value)


def _check_visible(node: Node, value: Value) -> None:
    if not node.owner.sees(value):
        raise ModelError(f"node {node.label!r} cannot read {value!r}, which it does not see")


def write_input(node: Node, index: int, value: Value | None) -> None:
    before = node._inputs[index]
    if before is not None:
        use_lists.drop_use(before, node, index)
    node._inputs[index] = value
    if value is None:
        node.proto.input[index] = ""
    else:
        node.proto.input[index] = value.name
        use_lists.add_use(value, node, index)
    assert node.graph is not None
    node.graph._order = None


def set_inputs(graph: Graph, node: Node, inputs: Sequence[Value | None]) -> None:
    """Replace the inputs of the node; their number may change."""
    check_node_within(graph, node)
    for value in inputs:
        if value is not None:
            _check_visible(node, value)
    graph._log(Edit.SET_INPUTS, node, list(node._inputs), node.proto)
    proto = _copy(node.proto)
    del proto.input[:]
    proto.input.extend("" if value is None else value.name for value in inputs)
    write_inputs(node, list(inputs), proto)
    invalidate_elements(node, None, None)


def write_inputs(node: Node, inputs: list[Value | None], proto: onnx.NodeProto) -> None:
    use_lists.unlink_inputs(node)
    node._inputs = inputs
    node.proto = proto
    node.forget_attributes()
    use_lists.link_inputs(node)
    assert node.graph is not None
    node.graph._order = None


def drop_outputs(graph: Graph, node: Node, indices: Iterable[int]) -> None:
    """Make unused outputs absent; those at the end are removed.

    Raises:
        ModelError: one of them is still read, or there is no such output.
    """
    outputs = list(node._outputs)
    for index in indices:
        check_place(node, index, "output")
        outputs[index] = None
    while outputs and outputs[-1] is None:
        outputs.pop()
    graph.set_outputs(node, outputs)


def set_outputs(graph: Graph, node: Node, outputs: Sequence[Value | None]) -> None:
    """Replace the outputs of the node: its own at their index, detached values, or None.

    Raises:
        ModelError: a removed one is still read, or a new one has another source or index.
    """
    check_node(graph, node)
    before, after = node._outputs, list(outputs)
    for value in before:
        if value is not None and value not in after and value.is_used:
            raise ModelError(f"output {value.name!r} of node {node.label!r} is used")
    for index, value in enumerate(after):
        if value is None or (index < len(before) and before[index] is value):
            continue
        check_detached(value, node)
        check_free(graph, value.name)
    check_distinct(node, after)
    if after == before:
        return
    graph._log(Edit.SET_OUTPUTS, node, before, node.proto)
    proto = _copy(node.proto)
    del proto.output[:]
    proto.output.extend("" if value is None else value.name for value in after)
    write_outputs(node, after, proto)


def write_outputs(node: Node, outputs: list[Value | None], proto: onnx.NodeProto) -> None:
    for value in node._outputs:
        if value is not None and value not in outputs:
            leave(node.owner, value)
            value.producer = None
    for index, value in enumerate(outputs):
        if value is not None and value.graph is None:
            value.producer, value.index = node, index
            enter(node.owner, value)
    node._outputs = outputs
    node.proto = proto
    node.forget_attributes()


def exchange_outputs(graph: Graph, one: Node, index: int, other: Node, place: int) -> None:
    """Swap an output of two nodes of the graph: users, names and types stay with the values.

    Raises:
        ModelError: a node is not in the graph, or has no such output.
    """
    for node, at in ((one, index), (other, place)):
        check_place(node, at, "output")
        if node.graph is not graph or node._outputs[at] is None:
            raise ModelError(f"node {node.label!r} has no output {at} to exchange")
    if one._outputs[index] is other._outputs[place]:
        return
    graph._log(Edit.EXCHANGE_OUTPUTS, one, index, other, place)
    write_exchanged(one, index, other, place)


def write_exchanged(one: Node, index: int, other: Node, place: int) -> None:
    first, second = one._outputs[index], other._outputs[place]
    assert first is not None
    assert second is not None
    with use_lists.unlinked(first, second):
        for node, at, value in ((one, index, second), (other, place, first)):
            node._outputs[at] = value
            node.proto.output[at] = value.name
            value.producer, value.index = node, at
    one.owner._order = None


def set_attribute(graph: Graph, node: Node, name: str, value: Any) -> None:
    """Write an attribute; None removes it."""
    check_node_within(graph, node)
    proto = _copy(node.proto)
    for index, attribute in enumerate(proto.attribute):
        if attribute.name == name:
            del proto.attribute[index]
            break
    if value is not None:
        proto.attribute.append(encode_attribute(name, value, node.schema))
    set_proto(graph, node, proto)


def set_metadata(graph: Graph, node: Node, entries: Mapping[str, str]) -> None:
    """Write the node's metadata_props."""
    check_node_within(graph, node)
    proto = _copy(node.proto)
    del proto.metadata_props[:]
    for key, text in entries.items():
        proto.metadata_props.add(key=key, value=text)
    set_proto(graph, node, proto)


@undone_on_error
def set_operator(graph: Graph, node: Node, op_type: str, domain: str = "") -> None:
    """Change the operator of a node but not its operands and attributes; drop its types.

    Raises:
        ModelError: the operator does not take this number of operands, or has no such attribute.
    """
    check_node_within(graph, node)
    key = domain_of(domain), op_type
    if key == (node.domain, node.op_type):
        return
    graph.import_domain(key[0], op_type)
    schema = schema_of(op_type, key[0], graph.opset(key[0]))
    if schema is not None:
        _check_signature(node, schema)
    node.owner.model.check_callee(node.owner, (key[0], op_type, node.proto.overload))
    for value in node._outputs:
        if value is not None and not value.is_graph_output:
            graph.set_type(value, NOT_INFERRED)
    proto = _copy(node.proto)
    proto.op_type, proto.domain = op_type, domain
    set_proto(graph, node, proto)


def _check_signature(node: Node, schema: Schema) -> None:
    name, inputs, outputs = schema.name, len(node._inputs), len(node._outputs)
    # A node that is not connected yet may get its operands later.
    if inputs > schema.max_input or 0 < inputs < schema.min_input:
        raise ModelError(f"node {node.label!r} cannot be {name}: it has {counted(inputs, 'input')}")
    if outputs > schema.max_output:
        raise ModelError(
            f"node {node.label!r} cannot be {name}: it has {counted(outputs, 'output')}"
        )
    for attribute in node.attribute_protos():
        if attribute not in attributes_of(schema):
            raise ModelError(f"node {node.label!r} cannot be {name}: it has {attribute!r}")
    for attribute, declared in attributes_of(schema).items():
        if declared.required and not node.has_attr(attribute):
            raise ModelError(f"node {node.label!r} cannot be {name}: it has no {attribute!r}")


def set_proto(graph: Graph, node: Node, proto: onnx.NodeProto) -> None:
    graph._log(Edit.SET_PROTO, node, node.proto)
    write_proto(node, proto)


def write_proto(node: Node, proto: onnx.NodeProto) -> None:
    key = domain_of(proto.domain), proto.op_type
    if key != (node.domain, node.op_type):
        by_op = node.owner._by_op
        del by_op[node.domain, node.op_type][node.id]
        node.domain, node.op_type = key
        by_op.setdefault(key, {})[node.id] = node
    node.proto = proto
    node.forget_attributes()


def rename_node(graph: Graph, node: Node, name: str) -> None:
    """Rename the node.

    Raises:
        ModelError: another node of its graph has the name.
    """
    check_node_within(graph, node)
    if node.proto.name == name:
        return
    if has_node_named(node.owner, name):
        raise ModelError(
            f"node {node.label!r} cannot be named {name!r}: another node of its graph has the "
            "name, and runtimes refuse two of one name; model.node_names.fresh(name) is a free one"
        )
    graph._log(Edit.RENAME_NODE, node, node.proto)
    proto = _copy(node.proto)
    if name:
        proto.name = name
    else:
        proto.ClearField("name")
    write_named(node, proto)


def has_node_named(graph: Graph, name: str) -> bool:
    """Return whether a node of a graph itself, not of its bodies, has a name."""
    if not name or name not in graph.model.node_names:
        return False
    return any(node.proto.name == name for node in graph._nodes.values())


def write_named(node: Node, proto: onnx.NodeProto) -> None:
    names = node.owner.model.node_names
    if node.proto.name:
        names.release(node.proto.name)
    node.proto = proto
    node.forget_attributes()
    if proto.name:
        names.take(proto.name)


def _copy(proto: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    return copy
