"""The rules of onnxruntime's own operators, which its optimisations write."""

from __future__ import annotations

from collections.abc import Mapping

from tiered.analysis.batching.facts import Fact, Refusal, Rows
from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import common, leading, mixes
from tiered.graph import Node

MICROSOFT = "com.microsoft"


@BATCHES.rule("BiasGelu", "FastGelu", "Gelu", "QuickGelu", domain=MICROSOFT)
def activation(state: Following, node: Node) -> Fact:
    """An activation; a bias has a number for each element of the last axis."""
    state.shared(node, *range(1, len(node.inputs)))
    rows = state.rows(node, 0)
    assert rows is not None
    if node.input(1) is not None and rows.axis == state.rank(node.inputs[0]) - 1:
        raise mixes(node, 0, rows)
    return rows


@BATCHES.rule("FusedConv", domain=MICROSOFT)
def fused_conv(state: Following, node: Node) -> Fact:
    """FusedConv: what is added has the samples of the image."""
    return leading(0, 3)(state, node)


@BATCHES.rule("FusedGemm", domain=MICROSOFT)
def fused_gemm(state: Following, node: Node) -> Fact:
    """FusedGemm: the batch is the rows of A."""
    state.shared(node, 1, 2)
    rows = state.rows(node, 0)
    assert rows is not None
    addend = node.input(2)
    if rows.axis != (1 if node.attr("transA", 0) else 0):
        raise mixes(node, 0, rows)
    if addend is not None and state.rank(addend) == 2 and state.sizes(addend)[0] != 1:
        raise Refusal(f"its operand {addend.name!r} has a number for each sample")
    return rows.on(0)


@BATCHES.rule("FusedMatMul", domain=MICROSOFT)
def fused_matmul(state: Following, node: Node) -> Fact:
    """FusedMatMul: a product of matrices that are read transposed."""
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        raise Refusal("it moves the axes of the batch")
    ranks = [state.rank(value) for value in node.inputs]
    if min(ranks) < 2:
        raise Refusal("an operand is a vector")
    carried, rank = state.in_rows(node), max(ranks)
    axes = {slot: _axis_of_product(node, slot, rows, ranks, rank) for slot, rows in carried.items()}
    first, rows = next(iter(carried.items()))
    if len(set(axes.values())) > 1 or (len(carried) > 1 and axes[first] >= rank - 2):
        raise mixes(node, first, rows)
    common([rows.on(0) for rows in carried.values()])
    _spread_other(state, node, axes, ranks, rank, rows)
    return rows.on(axes[first])


def _axis_of_product(node: Node, slot: int, rows: Rows, ranks: list[int], rank: int) -> int:
    """Return the axis of the product that an axis of a factor becomes.

    Raises:
        Refusal: the product sums over it.
    """
    behind = ranks[slot] - 1 - rows.axis
    if behind > 1:
        return rank - 1 - behind
    is_read_transposed = bool(node.attr("transB" if slot else "transA", 0))
    is_last = (behind == 0) != is_read_transposed
    if is_last != bool(slot):
        raise mixes(node, slot, rows)
    return rank - 1 if slot else rank - 2


def _spread_other(
    state: Following,
    node: Node,
    axes: Mapping[int, int],
    ranks: list[int],
    rank: int,
    rows: Rows,
) -> None:
    """Repeat a factor that is the same for every sample and has a matrix for each."""
    axis = next(iter(axes.values()))
    if axis >= rank - 2:
        return
    for slot in {0, 1} - axes.keys():
        own = axis - rank + ranks[slot]
        if own >= 0 and state.sizes(node.inputs[slot])[own] != 1:
            state.spread(node, slot, rows.on(own))


@BATCHES.rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_normalization(state: Following, node: Node) -> Made:
    """The norm of a sum along the last axis; the second operand may broadcast along the batch."""
    state.shared(node, *range(2, len(node.inputs)))
    rank = state.rank(node.inputs[0])
    carried = state.in_rows(node)
    for slot, rows in carried.items():
        if rows.axis != 0 or rank < 2 or state.rank(node.inputs[slot]) != rank:
            raise mixes(node, slot, rows)
    rows = common(carried.values())
    if 0 not in carried:
        state.spread(node, 0, rows)
    skip = node.inputs[1]
    if 1 not in carried and state.rank(skip) == rank and state.sizes(skip)[0] != 1:
        state.spread(node, 1, rows)
    return rows


@BATCHES.rule("EmbedLayerNormalization", domain=MICROSOFT)
def embedded(state: Following, node: Node) -> Made:
    """EmbedLayerNormalization of ids, segments, a mask and positions that have the batch first."""
    state.shared(node, *range(2, 7))
    rows = leading(0, 1, 7, others=(8,))(state, node)
    assert isinstance(rows, Rows)
    positions = node.input(8)
    if positions is not None and state.rows(node, 8) is None and state.sizes(positions)[0] != 1:
        state.spread(node, 8, rows)
    return rows


@BATCHES.rule("Attention", domain=MICROSOFT)
def attention(state: Following, node: Node) -> Made:
    """Attention over [batch, sequence, hidden]; a mask of one axis has the lengths, or more."""
    for slot, name in ((4, "past"), (6, "past_sequence_length")):
        if node.input(slot) is not None:
            raise Refusal(f"its operand {name} has no rule")
    return _masked(state, node, (0,), weights=(1, 2), masks=(3, 5))


@BATCHES.rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(state: Following, node: Node) -> Made:
    """MultiHeadAttention of query, key and value that have the batch first."""
    for slot in range(6, len(node.inputs)):
        if node.input(slot) is not None:
            raise Refusal(f"its operand {slot} has no rule")
    return _masked(state, node, (0, 1, 2), weights=(3,), masks=(4, 5))


def _masked(
    state: Following,
    node: Node,
    slots: tuple[int, ...],
    weights: tuple[int, ...],
    masks: tuple[int, ...],
) -> Rows:
    others = [value for value in node.outputs[1:] if value is not None and value.is_used]
    if others:
        raise Refusal(f"its output {others[0].name!r} has no rule")
    state.shared(node, *weights)
    rows = leading(*slots, others=masks)(state, node)
    assert isinstance(rows, Rows)
    for slot in masks:
        mask = node.input(slot)
        if mask is None:
            continue
        if state.rank(mask) < 2 and state.sizes(mask)[0] != state.old:
            raise Refusal(f"its mask {mask.name!r} has more than a number for each sample")
        # A mask of fewer than three axes does not broadcast.
        is_broadcast = state.rank(mask) > 2 and state.sizes(mask)[0] == 1
        if state.rows(node, slot) is None and not is_broadcast:
            state.spread(node, slot, rows)
    return rows
