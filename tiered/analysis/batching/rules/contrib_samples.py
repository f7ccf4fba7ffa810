"""The rules of onnxruntime's own operators, which its optimisations write."""

from __future__ import annotations

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import leading
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows
from tiered.graph import Node

MICROSOFT = "com.microsoft"


@BATCHES.rule("EmbedLayerNormalization", domain=MICROSOFT)
def embedded(state: Following, node: Node) -> Made:
    """EmbedLayerNormalization of ids, segments, a mask and positions that have the batch first."""
    state.shared(node, *range(2, 7))
    rows = leading(0, 1, 7, others=(8,))(state, node)
    assert isinstance(rows, BatchRows)
    positions = node.input(8)
    if positions is not None and state.rows(node, 8) is None and state.sizes(positions)[0] != 1:
        state.spread(node, 8, rows)
    return rows


@BATCHES.rule("Attention", domain=MICROSOFT)
def attention(state: Following, node: Node) -> Made:
    """Attention over [batch, sequence, hidden]; a mask of one axis has the lengths, or more."""
    for slot, name in ((4, "past"), (6, "past_sequence_length")):
        if node.input(slot) is not None:
            raise BatchRefusal(f"its operand {name} has no rule")
    return _masked(state, node, (0,), weights=(1, 2), masks=(3, 5))


@BATCHES.rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(state: Following, node: Node) -> Made:
    """MultiHeadAttention of query, key and value that have the batch first."""
    for slot in range(6, len(node.inputs)):
        if node.input(slot) is not None:
            raise BatchRefusal(f"its operand {slot} has no rule")
    return _masked(state, node, (0, 1, 2), weights=(3,), masks=(4, 5))


def _masked(
    state: Following,
    node: Node,
    slots: tuple[int, ...],
    weights: tuple[int, ...],
    masks: tuple[int, ...],
) -> BatchRows:
    others = [value for at, value in node.used_outputs.items() if at]
    if others:
        raise BatchRefusal(f"its output {others[0].name!r} has no rule")
    state.shared(node, *weights)
    rows = leading(*slots, others=masks)(state, node)
    assert isinstance(rows, BatchRows)
    for slot in masks:
        mask = node.input(slot)
        if mask is None:
            continue
        if state.rank(mask) < 2 and state.sizes(mask)[0] != state.old:
            raise BatchRefusal(f"its mask {mask.name!r} has more than a number for each sample")
        # A mask of fewer than three axes does not broadcast.
        is_broadcast = state.rank(mask) > 2 and state.sizes(mask)[0] == 1
        if state.rows(node, slot) is None and not is_broadcast:
            state.spread(node, slot, rows)
    return rows
