"""The primitives that edit values: names, types, and the contents of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.errors import ModelError
from tiered.graph import links
from tiered.graph.edit_nodes import check_move
from tiered.graph.elements import forget_elements_below
from tiered.graph.journal import Edit
from tiered.graph.names import check_free
from tiered.graph.tensor import Tensor
from tiered.graph.types import ValueType
from tiered.graph.value import NOT_INFERRED, SLOT_MASK, NotInferred, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph


def rename_value(graph: Graph, value: Value, name: str) -> None:
    """Rename a value everywhere: producer, users at any depth, outputs, type declarations.

    Raises:
        ModelError: the name is empty, or taken where the value is seen.
    """
    if value.name == name:
        return
    check_free(value.owner, name)
    graph._log(Edit.RENAME_VALUE, value, value.name)
    value.owner._write_name(value, name)


def write_name(graph: Graph, value: Value, name: str) -> None:
    graph._leave(value)
    value.name = name
    graph._enter(value)
    if value.producer is not None:
        value.producer.proto.output[value.index] = name
    for key, node in value._users.items():
        node.proto.input[key & SLOT_MASK] = name


def set_type(graph: Graph, value: Value, value_type: ValueType | NotInferred | None) -> None:
    """State the type of a value; `NOT_INFERRED` has it inferred when it is asked for."""
    before = value.type
    if before == value_type:
        return
    graph._log(Edit.SET_TYPE, value, before)
    value._type = value_type


def constant(graph: Graph, array: np.ndarray[Any, Any] | Tensor, name: str = "const") -> Value:
    """Return a new constant value with these contents.

    It is an initializer, or a Constant node where none is possible: in local functions, and
    before IR 4, where each initializer would have to be an input.
    """
    tensor = array if isinstance(array, Tensor) else Tensor.of(array)
    if graph.root.is_function or graph.model.ir_version < 4:
        key = "sparse_value" if tensor.is_sparse else "value"
        node = graph.add_node("Constant", (), attributes={key: tensor}, name=name)
        return node.output
    return graph.add_constant(tensor, graph.model.names.fresh(name))


def add_constant(graph: Graph, tensor: Tensor, name: str) -> Value:
    """Add an initializer of this name.

    Raises:
        ModelError: the name is taken.
    """
    check_free(graph, name)
    value = Value(graph.model.next_serial(), None, name)
    value._tensor = tensor
    value._type = NOT_INFERRED
    graph._log(Edit.ADD_CONSTANT, value)
    graph._enter_constant(value)
    return value


def append_constant(graph: Graph, value: Value) -> None:
    """Put back an initializer that was removed.

    Raises:
        ModelError: it has no contents, is in a graph, or its name is taken.
    """
    if value._tensor is None or value.graph is not None:
        raise ModelError(f"{value!r} is no initializer that was removed")
    check_free(graph, value.name)
    graph._log(Edit.ADD_CONSTANT, value)
    graph._enter_constant(value)


def enter_constant(graph: Graph, value: Value) -> None:
    graph._enter(value)
    graph._constants[value.id] = value


def leave_constant(graph: Graph, value: Value) -> None:
    del graph._constants[value.id]
    graph._leave(value)


def remove_constant(graph: Graph, value: Value) -> None:
    """Remove an initializer that nobody reads.

    Raises:
        ModelError: it is still read, or is a graph input.
    """
    if value.is_used or value.is_graph_input:
        raise ModelError(f"initializer {value.name!r} cannot be removed: it is used")
    graph._log(Edit.REMOVE_CONSTANT, value, graph)
    graph._leave_constant(value)


def set_constant(graph: Graph, value: Value, tensor: Tensor | None) -> None:
    """Exchange the contents of an initializer; for an overridable one, None takes them away."""
    graph._log(Edit.SET_CONSTANT, value, value._tensor)
    graph._write_tensor(value, tensor)


def write_tensor(graph: Graph, value: Value, tensor: Tensor | None) -> None:
    value._tensor = tensor
    if tensor is None:
        graph._constants.pop(value.id, None)
    else:
        graph._constants[value.id] = value
    value._type = value._elements = NOT_INFERRED
    forget_elements_below(value)


def move_constant(graph: Graph, value: Value, target: Graph) -> None:
    """Move an initializer into another graph, which its users see.

    Raises:
        ModelError: one of them does not, the name is taken, or the target can have no initializer.
    """
    if target.is_function or value.is_graph_input:
        raise ModelError(f"{value!r} cannot be an initializer of {target!r}")
    check_move(value, target)
    graph._log(Edit.MOVE_CONSTANT, value, graph)
    value.owner._write_constant_graph(value, target)


def write_constant_graph(graph: Graph, value: Value, target: Graph) -> None:
    with links.unlinked(value):
        graph._leave_constant(value)
        target._enter_constant(value)
