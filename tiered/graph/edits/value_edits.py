"""The primitives that edit values: names, types, and the contents of constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core import use_lists
from tiered.graph.core.edit import Edit
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import (
    TensorType,
    ValueType,
    is_compatible,
    read_type,
    says_no_more,
    tensor_type,
)
from tiered.graph.core.value import NOT_INFERRED, SLOT_MASK, NotInferred, Value
from tiered.graph.edits.interface_edits import declared_type
from tiered.graph.edits.invalidate import forget_elements_below
from tiered.graph.edits.nodes import check_move, enter, leave
from tiered.graph.edits.transactions import check_free, check_model, check_value
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph


def rename_value(graph: Graph, value: Value, name: str) -> None:
    """Rename a value everywhere: producer, users at any depth, outputs, type declarations.

    Raises:
        ModelError: the name is empty, or taken where the value is seen.
    """
    check_model(graph, value)
    if value.name == name:
        return
    check_free(value.owner, name, value)
    graph._log(Edit.RENAME_VALUE, value, value.name)
    write_name(value, name)


def write_name(value: Value, name: str) -> None:
    graph = value.owner
    leave(graph, value)
    value.name = name
    enter(graph, value)
    if value.producer is not None:
        value.producer.proto.output[value.index] = name
    for key, node in value._users.items():
        node.proto.input[key & SLOT_MASK] = name


def set_type(graph: Graph, value: Value, value_type: ValueType | NotInferred | None) -> None:
    """Set the type of a value; `NOT_INFERRED` makes the next access infer it.

    Raises:
        ModelError: the type contradicts the file: of an input, a main output or a constant.
    """
    before = value.type
    if before == value_type:
        return
    if not isinstance(value_type, NotInferred):
        check_stated(value, value_type)
    graph._log(Edit.SET_TYPE, value, before)
    value._type = value_type


def check_stated(value: Value, stated: ValueType | None) -> None:
    """Raise if a type contradicts the file, or is more exact for a value without a producer.

    Raises:
        ModelError: it does.
    """
    tensor = value.tensor
    if tensor is not None:
        known: ValueType | None = tensor_type(tensor.dtype, tensor.shape)
        if not says_no_more(stated, known):
            raise ModelError(
                f"{value.name!r} is {known} by its contents, it cannot be stated as {stated}; "
                "change the contents (set_constant, assign)"
            )
        return
    change = "change the declaration (set_declared_type, or Model.set_input_shapes)"
    if value.input_of is not None and not value.input_of.is_function:
        known = declared_input_type(value)
        new = without_invented_names(value, stated)
        is_main = value.input_of.is_main
        if not (says_no_more(new, known) if is_main else is_compatible(new, known)):
            raise ModelError(
                f"graph input {value.name!r} is declared {known or 'without a type'}, it cannot "
                f"be stated as {stated}; {change}"
            )
    elif value.declared is not None and value.graph in value.output_of and value.graph.is_main:
        known = read_type(value.declared.type)
        if isinstance(known, TensorType) and isinstance(stated, TensorType):
            ranks = [len(kind.shape) for kind in (known, stated) if kind.shape is not None]
            if known.dtype != stated.dtype or len(set(ranks)) > 1:
                raise ModelError(
                    f"graph output {value.name!r} is declared {known}, it cannot be stated as "
                    f"{stated}; {change}"
                )


def without_invented_names(value: Value, kind: ValueType | None) -> ValueType | None:
    """Return the type of an input without the invented names of its unknown dims."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    is_given = value.owner.model.dims.is_given
    shape = tuple([None if is_given(dim) else dim for dim in kind.shape])
    return tensor_type(kind.dtype, shape)


def declared_input_type(value: Value) -> ValueType | None:
    """Return the type that its graph declares of an input."""
    graph = value.input_of
    assert graph is not None
    return declared_type(graph, graph._input_infos[graph._inputs.index(value)])


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
    enter_constant(graph, value)
    return value


def append_constant(graph: Graph, value: Value) -> None:
    """Restore a removed initializer.

    Raises:
        ModelError: it has no contents, is in a graph, or its name is taken.
    """
    if value._tensor is None or value.graph is not None:
        raise ModelError(f"{value!r} is no initializer that was removed")
    check_free(graph, value.name)
    graph._log(Edit.ADD_CONSTANT, value)
    enter_constant(graph, value)


def enter_constant(graph: Graph, value: Value) -> None:
    enter(graph, value)
    graph._constants[value.id] = value


def leave_constant(value: Value) -> None:
    graph = value.owner
    del graph._constants[value.id]
    leave(graph, value)


def remove_constant(graph: Graph, value: Value) -> None:
    """Remove an initializer without readers.

    Raises:
        ModelError: it is still read, or is a graph input.
    """
    check_value(graph, value)
    if value.is_used or value.is_graph_input:
        raise ModelError(f"initializer {value.name!r} cannot be removed: it is used")
    graph._log(Edit.REMOVE_CONSTANT, value, graph)
    leave_constant(value)


def set_constant(graph: Graph, value: Value, tensor: Tensor | None) -> None:
    """Replace the contents of an initializer; for an overridable one, None removes them.

    Raises:
        ModelError: it is overridable, and its declaration has another dtype, rank or size.
    """
    check_value(graph, value)
    if value.input_of is not None and tensor is not None:
        known, made = declared_input_type(value), tensor_type(tensor.dtype, tensor.shape)
        if not is_compatible(made, known):
            raise ModelError(
                f"graph input {value.name!r} is declared {known}, its default cannot be {made}; "
                "change the declaration (set_declared_type)"
            )
    graph._log(Edit.SET_CONSTANT, value, value._tensor)
    write_tensor(value, tensor)


def write_tensor(value: Value, tensor: Tensor | None) -> None:
    value._tensor = tensor
    if tensor is None:
        value.owner._constants.pop(value.id, None)
    else:
        value.owner._constants[value.id] = value
    value._elements = NOT_INFERRED
    if value.input_of is None:
        # Callers may feed any value of the declared type.
        value._type = NOT_INFERRED
    forget_elements_below(value)


def move_constant(graph: Graph, value: Value, target: Graph) -> None:
    """Move an initializer into another graph that its users see.

    Raises:
        ModelError: a user does not, the name is taken, or the target can have no initializers.
    """
    check_value(graph, value)
    if target.is_function or value.is_graph_input:
        raise ModelError(f"{value!r} cannot be an initializer of {target!r}")
    check_move(value, target)
    graph._log(Edit.MOVE_CONSTANT, value, graph)
    write_constant_graph(value, target)


def write_constant_graph(value: Value, target: Graph) -> None:
    with use_lists.unlinked(value):
        leave_constant(value)
        enter_constant(target, value)
