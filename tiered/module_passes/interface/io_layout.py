"""Inputs and outputs in one order of axes  =>  in another, with Transposes to the former one"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tiered import (
    InterfaceMap,
    Model,
    PassContext,
    Skip,
    TensorType,
    Unable,
    UsageError,
    Value,
    module_pass,
)
from tiered.rewriter.idioms.main_tensors import input_named, output_named

Relations = dict[str, tuple[str, Callable[[Any], Any] | None]]


@module_pass(
    opt_level=None, required=("infer_shapes",), touches=("Transpose",), changes_interface=True
)
def io_layout(
    model: Model,
    ctx: PassContext,
    *,
    inputs: dict[str, str] | None = None,
    outputs: dict[str, str] | None = None,
) -> Skip | None:
    """Take inputs and return outputs in another order of their axes.

    A Transpose at the border restores the order that the model computes in; `convert_layout` can
    then move it.

    Args:
        inputs: the present and the new order by input, as in {x: NCHW->NHWC}.
        outputs: the same by output.

    Raises:
        UsageError: the model has no such input or output, or the orders do not fit it.
    """
    relations: Relations = {}
    for name, orders in (inputs or {}).items():
        value = input_named(model, name, "io_layout")
        _change_input(model, value, _permutation(value, orders), relations)
    for name, orders in (outputs or {}).items():
        value = output_named(model, name, "io_layout")
        _change_output(model, value, _permutation(value, orders), relations)
    if not inputs and not outputs:
        return Unable("no layouts are given")
    if not relations:
        return Skip("the layouts are these already")
    model.note_interface(InterfaceMap(relations))
    return None


def _permutation(value: Value, orders: str) -> tuple[int, ...]:
    """Return the axes of the present order, in the new order."""
    before, arrow, after = (part.strip() for part in orders.partition("->"))
    if not arrow or sorted(before) != sorted(after) or len({*before}) < len(before):
        raise UsageError(f"io_layout: {orders!r} is no change of a layout; expected NCHW->NHWC")
    if value.rank is None or value.dtype is None:
        raise UsageError(f"io_layout: the type of {value.name!r} is unknown; set its shape")
    if value.rank != len(before):
        raise UsageError(
            f"io_layout: {value.name!r} has rank {value.rank}, not the axes of {before}"
        )
    return tuple(before.index(axis) for axis in after)


def _is_identity(permutation: tuple[int, ...]) -> bool:
    return permutation == tuple(range(len(permutation)))


def _transposed(permutation: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda array: np.transpose(array, permutation)


def _permuted(value: Value, permutation: tuple[int, ...]) -> TensorType:
    assert value.dtype is not None
    return TensorType(value.dtype, tuple(value.dim(axis) for axis in permutation))


def _change_input(
    model: Model, value: Value, permutation: tuple[int, ...], relations: Relations
) -> None:
    inverse = tuple(permutation.index(axis) for axis in range(len(permutation)))
    readers = [node for node, _ in value.users]
    is_done = len(readers) == 1 and readers[0].is_op("Transpose")
    if _is_identity(permutation) or (is_done and readers[0].attr("perm") == inverse):
        return
    if value.is_overridable or value.is_graph_output:
        kind = "has a default" if value.is_overridable else "is an output"
        raise UsageError(f"io_layout: input {value.name!r} {kind}, so it keeps its layout")
    graph, name = model.main, value.name
    at = graph.inputs.index(value)
    made = graph.add_input(model.names.fresh(name), _permuted(value, permutation), index=at)
    graph.replace_uses(value, graph.op.Transpose(made, perm=inverse))
    graph.remove_input(value)
    graph.rename_value(made, name)
    relations[name] = name, _transposed(permutation)


def _change_output(
    model: Model, value: Value, permutation: tuple[int, ...], relations: Relations
) -> None:
    node, name = value.producer, value.name
    is_done = node is not None and node.is_op("Transpose") and node.attr("perm") == permutation
    if _is_identity(permutation) or is_done:
        return
    if node is None:
        raise UsageError(f"io_layout: output {name!r} is computed by no node; change the input")
    graph, at = model.main, model.main.outputs.index(value)
    graph.remove_output(value)
    graph.rename_value(value, model.names.fresh(name))
    made = graph.op.Transpose(value, perm=permutation)
    graph.rename_value(made, name)
    graph.add_output(made, index=at)
    relations[name] = name, _transposed(permutation)
