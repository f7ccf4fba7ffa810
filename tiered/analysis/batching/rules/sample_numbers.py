"""The rules of numbers of samples: sample * step + place, which index the rows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered.analysis.batching.following import COUNTS, Following, Made, Rule
from tiered.analysis.batching.rules.generic import followed
from tiered.analysis.batching.rules.sample_parts import concat
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Columns, Fact, Step
from tiered.analysis.batching.uniform_values import Array
from tiered.graph import DataType, Node, Value
from tiered.graph.queries.op_traits import ELEMENTWISE
from tiered.graph.shape_inference.symbolic_dims import Poly, Size, add, multiply

SOME: Final = "it takes some of the samples, at the places in {!r}"


def kept(rule: Rule) -> Rule:
    """Return the rule of operators that move the elements of their first operand."""

    def with_step(state: Following, node: Node) -> Made:
        made, step = rule(state, node), state.step(node, 0)
        if isinstance(step, Columns) and node.op_type not in ("Cast", "Identity"):
            step = None
        if node.op_type == "Cast" and node.attr("to") not in (DataType.INT32, DataType.INT64):
            step = None
        return _with_step(made, step)

    return with_step


def _with_step(made: Made, step: Step) -> Made:
    if isinstance(made, list):
        return [each._replace(step=step) if isinstance(each, BatchRows) else each for each in made]
    return made._replace(step=step) if isinstance(made, BatchRows) else made


@COUNTS.rule(*(ELEMENTWISE - {"Add", "Cast", "Identity", "Mul"}))
def differently(state: Following, node: Node) -> Made:
    """Elementwise operators: of the result only the shape is known."""
    return _with_step(followed(state, node), None)


@COUNTS.rule("Add")
def added(state: Following, node: Node) -> Made:
    steps = [state.step(node, slot) for slot in range(2)]
    made = followed(state, node)
    first, second = steps
    if isinstance(first, Columns) or isinstance(second, Columns) or first is None or second is None:
        return _with_step(made, None)
    return _with_step(made, add(first, second))


@COUNTS.rule("Mul")
def multiplied(state: Following, node: Node) -> Made:
    steps = [state.step(node, slot) for slot in range(2)]
    made = followed(state, node)
    slot = 0 if steps[0] != 0 else 1
    step, factors = steps[slot], {*(state.elements(node.inputs[1 - slot]) or ())}
    if len(factors) != 1 or steps[1 - slot] != 0 or step is None or isinstance(step, Columns):
        return _with_step(made, None)
    (factor,) = factors
    return _with_step(made, None if factor is None else multiply(step, factor))


@COUNTS.rule("Concat")
def joined(state: Following, node: Node) -> Made:
    """Concat of indices of several axes along the last one."""
    made = concat(state, node)
    steps = [state.step(node, slot) for slot in range(len(node.inputs))]
    rank = state.rank(node.output)
    if node.attr("axis") % rank != rank - 1:
        return _with_step(made, None)
    columns: list[Size] = []
    for step, value in zip(steps, node.inputs, strict=True):
        count = state.sizes(value)[-1]
        if not isinstance(count, int) or step is None:
            return _with_step(made, None)
        columns += step.steps if isinstance(step, Columns) else [step] * count
    return _with_step(made, Columns(tuple(columns)))


# --- what they are for ----------------------------------------------------------------------------


@COUNTS.rule("Gather")
def gather(state: Following, node: Node) -> Fact:
    """Gather of the rows of each sample."""
    index = state.rows(node, 1)
    axis = node.attr("axis") % max(state.rank(node.inputs[0]), 1)
    data = _data(state, node, axis, state.step(node, 1))
    if data is None or index is None or data.axis != axis or data.outer != 1:
        raise BatchRefusal("it computes with the numbers of samples")
    _check_index(state, node, state.step(node, 1), data.inner)
    return index.on(axis + index.axis)


@COUNTS.rule("GatherND")
def gather_nd(state: Following, node: Node) -> Fact:
    index, steps = state.rows(node, 1), state.step(node, 1)
    data = _columns_data(state, node, steps)
    if data is None or index is None or node.attr("batch_dims") or data.outer != 1:
        raise BatchRefusal("it computes with the numbers of samples")
    columns: Sequence[Size] = steps.steps if isinstance(steps, Columns) else ()
    if data.axis >= len(columns) or index.axis == state.rank(node.inputs[1]) - 1:
        raise BatchRefusal("it computes with the numbers of samples")
    if any(step != 0 for at, step in enumerate(columns) if at != data.axis):
        raise BatchRefusal("it takes other places for each sample")
    _check_index(state, node, columns[data.axis], data.inner)
    return index


def _data(state: Following, node: Node, axis: int, step: Step) -> BatchRows | None:
    """Return the samples of the data; of data that all share, its rows are repeated for each."""
    data, value = state.rows(node, 0), node.inputs[0]
    if data is not None or not isinstance(step, int | Poly) or step == 0:
        return data
    rows = BatchRows(axis, 1, step)
    if state.sizes(value)[axis] != rows.size(state.old):
        return None
    state.spread(node, 0, rows)
    return rows


def _columns_data(state: Following, node: Node, steps: Step) -> BatchRows | None:
    """Return the samples of the data of a GatherND, by what each further sample adds."""
    if not isinstance(steps, Columns) or node.attr("batch_dims"):
        return state.rows(node, 0)
    counting = [at for at, step in enumerate(steps.steps) if step != 0]
    axis = counting[0] if len(counting) == 1 else 0
    return _data(state, node, axis, steps.steps[axis] if counting else 0)


def _check_index(state: Following, node: Node, step: Step, inner: Size) -> None:
    value = node.given(1)
    if step != inner:
        raise BatchRefusal(SOME.format(value.name))
    check_non_negative(state, value)


def check_non_negative(state: Following, value: Value) -> None:
    """Check that an index counts from the front, where the rows of a sample begin.

    Raises:
        Refusal: an element may be negative.
    """
    if not state.is_non_negative(value):
        raise BatchRefusal(f"the places in {value.name!r} may count from the end of the batch")


def constant_index(
    state: Following, node: Node, data: BatchRows, axes: Sequence[int], column: int | None = None
) -> int:
    """Let a constant index, which the size of the batch was folded into, follow the batch.

    Args:
        state: the analysis.
        node: a Gather or GatherND along the axis of the batch.
        data: the samples of its data.
        axes: the axes of the index that may be the batch.
        column: which of the last indices counts along the batch; None for all.

    Returns:
        The axis of the index that is the batch.

    Raises:
        Refusal: it takes other rows than those of each sample.
    """
    value = node.given(1)
    array, inner = value.const, data.inner
    if array is None and state.old == 1 and data.outer == 1:
        return _computed_index(state, node, value, data, axes, column)
    if array is None or not isinstance(inner, int) or data.outer != 1:
        raise BatchRefusal(SOME.format(value.name))
    factors = np.array(inner) if column is None else np.zeros(array.shape[-1], np.int64)
    if column is not None:
        factors[column] = inner
    rows = array.astype(np.int64)
    sizes = np.array(inner * state.old)
    rows = np.where((rows < 0) & (factors != 0), rows + sizes, rows)
    options = [axis for axis in axes if _counts(rows, axis, factors, state.old)]
    if not options:
        raise BatchRefusal(SOME.format(value.name))
    why = f"the constant {value.name!r} of {node.op_type} {node.label!r} bakes the batch"
    axis = state.choose(node, options, why)
    local = rows.take([0], axis=axis)
    state.edits.append(lambda to: to.number(node, local, axis, factors))
    return axis


def _computed_index(
    state: Following,
    node: Node,
    value: Value,
    data: BatchRows,
    axes: Sequence[int],
    column: int | None,
) -> int:
    """Let an index that is computed for a batch of 1 follow the batch; see `constant_index`."""
    sizes = state.sizes(value)
    options = [axis for axis in axes if sizes[axis] == 1]
    if not options:
        raise BatchRefusal(SOME.format(value.name))
    check_non_negative(state, value)
    axis = state.choose(node, options, f"{node.op_type} {node.label!r} takes rows of one sample")
    columns = None if column is None else int(str(sizes[-1]))
    state.edits.append(lambda to: to.number_computed(node, data, BatchRows(axis), column, columns))
    return axis


def _counts(rows: Array, axis: int, factors: Array, batch: int) -> bool:
    """Return whether an index takes its own rows of each sample along an axis."""
    if rows.shape[axis] != batch:
        return False
    local = rows.take([0], axis=axis)
    place = [batch if at == axis else 1 for at in range(rows.ndim)]
    expected = local + np.arange(batch).reshape(place) * factors
    is_own = (factors == 0) | (local < factors)
    return bool((rows == expected).all() and is_own.all())
