"""Manual edits composed of the primitives: insert, connect, bypass, delete."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import Shape, TensorType, ValueType, tensor_type
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.edits.nodes import insert
from tiered.graph.edits.transactions import (
    check_node,
    check_node_within,
    check_place,
    check_value,
    undone_on_error,
)
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node


def new_value(graph: Graph, name: str | None = None, value_type: ValueType | None = None) -> Value:
    """Return a new value with a fresh name that is in no graph yet.

    It enters a graph as the output of a node, or as a graph input.
    """
    names = graph.model.names
    value = Value(graph.model.next_serial(), None, names.fresh(name or "value"))
    value._type = NOT_INFERRED if value_type is None else value_type
    return value


def retype(
    value: Value, *, dtype: int | None = None, shape: Shape | EllipsisType | None = ...
) -> None:
    """Set the dtype of a value, its shape, or both.

    For an input or output of a graph, the declaration is changed.

    Raises:
        ModelError: it has a shape, but no dtype is known; or it is a constant of another type; or
            there is no such dtype.
    """
    dtype = value.dtype if dtype is None else dtype
    if dtype is not None and dtype not in set(DataType):
        raise ModelError(f"{value!r} cannot have the dtype {dtype!r}: onnx has no such DataType")
    if dtype is None:
        raise ModelError(f"{value!r} needs a dtype before it has a shape")
    made = TensorType(dtype, value.shape if isinstance(shape, EllipsisType) else shape)
    if value.graph is None:
        value._type = made  # a detached value has no journal
    elif value.is_graph_input or value.graph in value.output_of:
        value.graph.set_declared_type(value, made)
    else:
        value.graph.set_type(value, made)


@undone_on_error
def insert_before(graph: Graph, new: Node, node: Node, index: int = 0) -> Value:
    """Insert a node without inputs and outputs before one input of another; return its output.

    Only that input changes: other users of the value keep reading it.

    Raises:
        ModelError: the new node has operands already, or there is no such input.
    """
    check_node(graph, node)
    _check_bare(graph, new)
    check_place(node, index, "input")
    before = node.input(index)
    if before is None:
        raise ModelError(f"input {index} of node {node.label!r} is absent: nothing is before it")
    output = new_value(graph, f"{new.label}_output")
    graph.set_inputs(new, [before])
    graph.set_outputs(new, [output])
    graph.set_input(node, index, output)
    return output


@undone_on_error
def insert_after(graph: Graph, new: Node, node: Node, index: int = 0) -> Value:
    """Insert a node without inputs and outputs after one output of another; return its input.

    The new node computes the value with its name and users, so that graph outputs keep their
    names; it reads a fresh value.

    Raises:
        ModelError: the new node has operands already, or there is no such output.
    """
    check_node(graph, node)
    _check_bare(graph, new)
    check_place(node, index, "output")
    if node._outputs[index] is None:
        raise ModelError(f"output {index} of node {node.label!r} is absent: nothing is after it")
    between = new_value(graph, f"{node.label}_output")
    graph.set_outputs(new, [between])
    graph.exchange_outputs(node, index, new, 0)
    graph.set_inputs(new, [between])
    return between


def _check_bare(graph: Graph, new: Node) -> None:
    if new.owner is not graph or new._inputs or new._outputs:
        raise ModelError(f"node {new.label!r} must be in {graph!r}, without inputs and outputs")


def clone(graph: Graph, node: Node) -> Node:
    """Add a node with the operator and attributes of another, but without inputs and outputs.

    Raises:
        ModelError: it has bodies, which need their captured values: see `copy_nodes`.
    """
    if node.bodies:
        raise ModelError(f"node {node.label!r} has bodies: it is copied by copy_nodes")
    proto = onnx.NodeProto()
    proto.CopyFrom(node.proto)
    del proto.input[:], proto.output[:]
    proto.name = graph.model.node_names.fresh(node.name or node.op_type)
    return insert(graph, proto, (), 0)


@undone_on_error
def connect(
    graph: Graph, producer: Node | None, user: Node | None, value: Value | None = None
) -> Value:
    """Add a value as the last output of one node and the last input of another.

    Args:
        graph: the graph of both nodes.
        producer: the node that computes the value; None keeps its source.
        user: the node that reads it; None adds no user.
        value: a detached value, or an output of the producer; None makes a new one.

    Returns:
        the value.

    Raises:
        ModelError: the value has another source, or none.
    """
    for node in (producer, user):
        if node is not None:
            check_node_within(graph, node)
    if value is None:
        value = new_value(graph)
    if producer is not None and value.producer is not producer:
        graph.set_outputs(producer, (*producer._outputs, value))
    if user is not None:
        graph.set_inputs(user, (*user._inputs, value))
    return value


@undone_on_error
def create_value(
    graph: Graph,
    name: str | None = None,
    contents: np.ndarray[Any, Any] | None = None,
    producer: Node | None = None,
    users: Iterable[Node] = (),
) -> Value:
    """Return a new value: a constant with these contents, or an output of a node, with users.

    With neither contents nor producer it is detached.

    Raises:
        ModelError: it has both contents and a producer, or users and neither.
    """
    if contents is not None and producer is not None:
        raise ModelError(f"a value cannot have contents and be computed by {producer.label!r}")
    names = graph.model.names
    value = (
        new_value(graph, name)
        if contents is None
        else graph.constant(contents, names.fresh(name or "const"))
    )
    if producer is not None:
        connect(graph, producer, None, value)
    for user in users:
        connect(graph, None, user, value)
    return value


def assign(
    graph: Graph, value: Value, contents: np.ndarray[Any, Any], *, retype: bool = False
) -> None:
    """Replace the contents of an initializer.

    Raises:
        ModelError: it is not an initializer, or dtype or shape differ without `retype`.
    """
    tensor, before = Tensor.of(contents), value.default
    if before is None or not value.is_initializer:
        raise ModelError(f"{value!r} is no initializer, it cannot be assigned to")
    if not retype and (tensor.dtype, tensor.shape) != (before.dtype, before.shape):
        raise ModelError(
            f"{value.name!r} is {tensor_type(before.dtype, before.shape)}, it cannot become "
            f"{tensor_type(tensor.dtype, tensor.shape)} without retype=True"
        )
    graph.set_constant(value, tensor)


def mark_parameter(value: Value, is_parameter: bool) -> None:
    """Make an input with a default a constant, or an initializer an input with a default.

    Raises:
        ModelError: it is to become a constant but has no contents.
    """
    if value.default is None and is_parameter:
        raise ModelError(f"{value!r} has no contents, it cannot be a parameter")
    if value.is_overridable and is_parameter:
        value.owner.remove_input(value)
    elif value.is_initializer and not is_parameter:
        value.owner.mark_input(value)


@undone_on_error
def join(graph: Graph, value: Value, other: Value) -> None:
    """Make all users of `other` read `value`; remove `other`, which has no producer.

    Raises:
        ModelError: a node computes `other`.
    """
    if other.graph is None:
        return
    if other.producer is not None:
        raise ModelError(f"{other!r} is computed by node {other.producer.label!r}")
    graph.replace_uses(other, value)
    delete_value(graph, other)


@undone_on_error
def bypass(graph: Graph, node: Node) -> None:
    """Remove a node with one non-constant input: users of its output read that input.

    A graph output keeps its name, as in `replace_uses`.

    Raises:
        ModelError: it has several such inputs, or several outputs.
    """
    check_node(graph, node)
    read = [value for value in node._inputs if value is not None and not value.is_initializer]
    written = [value for value in node._outputs if value is not None]
    if len(read) != 1 or len(written) != 1:
        raise ModelError(
            f"node {node.label!r} has {counted(len(read), 'input')} and "
            f"{counted(len(written), 'output')}; only a node with one of each can be bypassed"
        )
    graph.replace(node, [read[0]])
    if node.graph is not None:
        delete(graph, node)


@undone_on_error
def delete(graph: Graph, node: Node) -> None:
    """Remove a node without users, and the initializers that only it reads.

    Raises:
        ModelError: it is still read.
    """
    check_node(graph, node)
    read = dict.fromkeys(node._inputs)
    graph.remove_node(node)
    for value in read:
        if value is None or value.graph is None or value.is_used or value.is_graph_input:
            continue
        if value.is_initializer:
            value.graph.remove_constant(value)


@undone_on_error
def delete_value(graph: Graph, value: Value) -> None:
    """Remove a value: from the nodes that read it where that is optional, and from its source.

    Raises:
        ModelError: a node cannot do without it, or it is a graph output.
    """
    check_value(graph, value)
    for node, slot in value.users:
        if not node.is_optional(slot):
            raise ModelError(f"node {node.label!r} cannot do without its input {value.name!r}")
    for node, slot in value.users:
        node.owner.set_input(node, slot, None)
    home = value.owner
    if value.producer is not None:
        home.drop_outputs(value.producer, [value.index])
        return
    if value.is_graph_input:
        home.remove_input(value)
    if value.is_initializer:
        home.remove_constant(value)
