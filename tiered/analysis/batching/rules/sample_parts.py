"""The rules of operators that move or take parts of a tensor, or join several."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import common, followed, mixes
from tiered.analysis.batching.rules.small_operands import named_axes
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Columns, Fact, mentions
from tiered.analysis.batching.uniform_values import Array
from tiered.graph import Node
from tiered.graph.shape_inference.symbolic_dims import Size

if TYPE_CHECKING:
    from tiered.analysis.batching.batch_edits import Rewriting

_END: Final = np.iinfo(np.int32).max
"""Exporters write this end of a Slice, or a larger one, for "all"."""


@BATCHES.rule("Concat")
def concat(state: Following, node: Node) -> Made:
    axis = node.attr("axis") % max(state.rank(node.output), 1)
    for slot, rows in state.in_rows(node).items():
        if rows.axis == axis:
            raise mixes(node, slot, rows)
    made = _with_numbers(state, node, axis)
    return followed(state, node) if made is None else made


def _with_numbers(state: Following, node: Node, axis: int) -> BatchRows | None:
    """Follow a Concat of indices: constants count the samples, others carry them; None for others.

    So it is where exporters index a tensor by the sample and a place of it.
    """
    carried, rank = state.in_rows(node), state.rank(node.output)
    rows = common(carried.values())
    is_alike = all(each == rows and state.step(node, slot) == 0 for slot, each in carried.items())
    if axis != rank - 1 or not rows.is_whole or not is_alike:
        return None
    steps: list[Size] = []
    counts: list[tuple[int, int, Array]] = []
    for slot, value in enumerate(node.inputs):
        array = None if slot in carried else node.given(slot).const
        step = 0 if array is None else _step(array, rows.axis, state.old)
        width = state.sizes(value)[axis]
        if not isinstance(width, int):
            return None
        steps += [step] * width
        if step and array is not None:
            counts.append((slot, step, array.take([0], axis=rows.axis)))
        elif slot not in carried:
            return None
    if not counts:
        return None
    for slot, step, start in counts:
        state.edits.append(partial(_count, node, slot, rows.axis, step, start))
    return rows._replace(step=Columns(tuple(steps)))


def _step(array: Array, axis: int, batch: int) -> int:
    """Return what each further sample adds to the integers of a constant; 0 if several numbers."""
    if batch == 1 or array.dtype.kind != "i" or not array.size:
        return 0
    steps = np.diff(array.astype(np.int64), axis=axis)
    return int(steps.flat[0]) if (steps == steps.flat[0]).all() else 0


def _count(node: Node, slot: int, axis: int, step: int, start: Array, to: Rewriting) -> None:
    to.count_from(node, slot, axis, step, start)


@BATCHES.rule("Slice")
def slices(state: Following, node: Node) -> Fact:
    """Slice: all of the batch."""
    rows = state.samples(node)
    value = node.inputs[0]
    rank = state.rank(value)
    names = ("starts", "ends", "steps")
    starts, ends, steps = (state.elements(node.operand(name)) for name in names)
    axes = named_axes(state, node, rank)
    if starts is None or ends is None or (steps is None and node.operand("steps") is not None):
        raise BatchRefusal("its bounds are not known")
    places = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(places) if steps is None else steps
    bounds = zip(places, starts, ends, steps, strict=True)
    for number, (axis, start, end, step) in enumerate(bounds):
        if axis != rows.axis:
            if any(mentions(each, state.name) for each in (start, end, step)):
                raise BatchRefusal("its bounds depend on the size of the batch")
            continue
        is_all = end == rows.size(state.batch) or (isinstance(end, int) and end >= _END)
        total = rows.size(state.old)
        is_baked = state.old > 1 and end == total
        if start != 0 or step != 1 or not (is_all or is_baked):
            raise BatchRefusal(
                f"it takes some of the samples: elements {start} to {end} of a batch of {total}"
            )
        if is_baked:
            state.edits.append(partial(_end, node, number))
    return rows


def _end(node: Node, number: int, to: Rewriting) -> None:
    to.set_end(node, number)


@BATCHES.rule("Split")
def split(state: Following, node: Node) -> Fact:
    state.shared(node, 1)
    rows = state.samples(node)
    if node.attr("axis") % state.rank(node.inputs[0]) == rows.axis:
        raise BatchRefusal(f"it splits the axis of a batch of {state.old}")
    return rows


@BATCHES.rule("Pad")
def pad(state: Following, node: Node) -> Made:
    state.shared(node, *range(1, len(node.inputs)))
    rows = state.samples(node)
    rank = state.rank(node.inputs[0])
    axes, pads = named_axes(state, node, rank), state.elements(node.operand("pads"))
    if pads is None:
        raise BatchRefusal("its pads are not known")
    places = list(range(rank)) if axes is None else axes
    own = [pads[at] for at, axis in enumerate((*places, *places)) if axis == rows.axis]
    if any(own):
        raise BatchRefusal(f"it pads the axis of a batch of {state.old}")
    return rows
