"""The rules of Gather, Scatter and their like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import common, followed, mixes
from tiered.analysis.batching.rules.sample_numbers import check_non_negative, constant_index
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Fact
from tiered.graph import Node
from tiered.graph.shape_inference.symbolic_dims import Size

_OTHERS: Final = "it takes other places for each sample"
_BATCH_DIMS_SINCE: Final = 12
"""The opset of GatherND with batch_dims."""


@BATCHES.rule("Gather")
def gather(state: Following, node: Node) -> Made:
    """Gather: places of another axis, or a place for each sample of what all share."""
    carried = state.in_rows(node)
    data = carried.get(0)
    axis = node.attr("axis") % max(state.rank(node.inputs[0]), 1)
    if data is not None and data.axis == axis and len(carried) == 1:
        rank = state.rank(node.inputs[1])
        # One row of one sample: what the rows are of a batch of 1 is not known.
        axes = range(rank) if rank > 1 or not data.is_whole else ()
        return BatchRows(axis + constant_index(state, node, data, axes))
    if len(carried) == 2:
        return _of_each(state, node, carried, axis)
    return followed(state, node)


def _of_each(state: Following, node: Node, carried: Mapping[int, BatchRows], axis: int) -> Fact:
    """A place for each sample, in a batch of 1: along the rows of a sample, or another axis."""
    data, index = carried[0], carried[1]
    value = node.given(1)
    if state.old != 1 or data.outer != 1 or index.outer != 1:
        raise BatchRefusal(_OTHERS)
    if data.axis == axis and isinstance(index.inner, int):
        if not data.is_whole:
            check_non_negative(state, value)
        state.edits.append(lambda to: to.number_computed(node, data, index, None, None))
        return index.on(axis + index.axis)
    if (data, index, axis) != (
        BatchRows(0),
        BatchRows(0),
        1,
    ) or node.owner.opset() < _BATCH_DIMS_SINCE:
        raise BatchRefusal(_OTHERS)
    state.edits.append(lambda to: to.take_places(node))
    return BatchRows(0)


@BATCHES.rule("GatherND")
def gather_nd(state: Following, node: Node) -> Fact:
    carried = state.in_rows(node)
    count = node.attr("batch_dims", 0)
    ranks = [state.rank(value) for value in node.inputs]
    depth = state.sizes(node.inputs[1])[-1]
    rows = common(carried.values())
    if len(carried) == 2 or rows.axis < count:
        if rows.axis >= count and count <= carried[1].axis < ranks[1] - 1:
            return _column_of_each(state, node, carried[0], carried[1], depth)
        if any(each.axis != rows.axis for each in carried.values()) or rows.axis >= count:
            raise BatchRefusal(_OTHERS)
        for slot in range(2):
            if slot not in carried:
                state.spread(node, slot, rows)
        return rows
    if 1 in carried:
        if rows.axis == ranks[1] - 1:
            raise mixes(node, 1, rows)
        return rows
    if not isinstance(depth, int):
        raise BatchRefusal("how many places its index has is not known")
    if rows.axis < count + depth:
        axes = range(count, ranks[1] - 1)
        return BatchRows(constant_index(state, node, rows, axes, rows.axis - count))
    return rows.on(rows.axis - depth - count + ranks[1] - 1)


def _column_of_each(
    state: Following, node: Node, data: BatchRows, index: BatchRows, depth: Size | None
) -> Fact:
    """A GatherND of places of each sample in a batch of 1, one of them along the rows of it."""
    column, value = data.axis - node.attr("batch_dims", 0), node.given(1)
    if state.old != 1 or data.outer != 1 or not isinstance(index.inner, int):
        raise BatchRefusal(_OTHERS)
    if not isinstance(depth, int) or column >= depth:
        raise BatchRefusal(_OTHERS)
    if not data.is_whole:
        check_non_negative(state, value)
    state.edits.append(lambda to: to.number_computed(node, data, index, column, depth))
    return index


@BATCHES.rule("ScatterND")
def scatter_nd(state: Following, node: Node) -> Fact:
    """ScatterND at places of other axes than the batch."""
    carried = state.in_rows(node)
    ranks = [state.rank(value) for value in node.inputs]
    depth = state.sizes(node.inputs[1])[-1]
    if 1 in carried or not isinstance(depth, int):
        raise BatchRefusal("it writes to other places for each sample")
    slot = next(iter(carried))
    rows = carried[slot]
    data = rows if slot == 0 else rows.on(rows.axis - (ranks[1] - 1) + depth)
    if data.axis < depth:
        name = node.given(1).name
        raise BatchRefusal(f"it writes to some of the samples, at the places in {name!r}")
    places = {0: data, 2: data.on(data.axis - depth + ranks[1] - 1)}
    for at, own in places.items():
        if at not in carried:
            state.spread(node, at, own)
        elif carried[at] != own:
            raise BatchRefusal("its operands have the samples on different axes")
    return data
