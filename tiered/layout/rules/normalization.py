"""Rules of normalizations: the axes that they count together stay where the operator wants them."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.graph import Node, Value
from tiered.layout.propagation import NO_RANK, Labels, Passage, Permuted, rank_of, whole
from tiered.layout.rules.axes import followed_operands
from tiered.rewriter import Skip


def _write(op: Permuted) -> Sequence[Value]:
    return op.emit(followed_operands(op))


def batch_normalization(node: Node) -> Passage | Skip:
    """BatchNormalization and LRN: channels stay axis 1, all else may change places."""
    rank = rank_of(node)
    if rank is None or rank < 2:
        return NO_RANK
    if node.attr("training_mode", 0) or len(node.outputs) > 1:
        return Skip("it trains")
    labels = whole(rank)
    others = tuple(None for _ in node.inputs[1:])
    return Passage((labels, *others), (labels,), _write, allows=lambda order: order[1] == 1)


def instance_normalization(node: Node) -> Passage | Skip:
    """InstanceNormalization and GroupNormalization: batch and channels stay, the rest moves."""
    rank = rank_of(node)
    if rank is None or rank < 2:
        return NO_RANK
    labels = whole(rank)
    others = tuple(None for _ in node.inputs[1:])
    return Passage(
        (labels, *others),
        (labels,),
        _write,
        allows=lambda order: order[:2] == (0, 1),
        is_exact=False,
    )


def layer_normalization(node: Node) -> Passage | Skip:
    """LayerNormalization and RMSNormalization: what is normalised stays last.

    In another order of the normalised axes, scale and bias change theirs too.
    """
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    labels, start = whole(rank), node.attr("axis", -1) % rank
    tail = labels[start:]
    ranks = [None if value is None else value.rank for value in node.inputs[1:]]
    for value, width in zip(node.inputs[1:], ranks, strict=True):
        if value is not None and (width is None or width > len(tail)):
            return Skip("its scale or bias may have more dims than what is normalised")
    movable = all(width in (None, len(tail)) for width in ranks)
    scales = tuple(tail if width == len(tail) else None for width in ranks)

    def allows(order: Labels) -> bool:
        last = order[start:]
        return last == tail or (movable and set(last) == set(tail))

    outputs = tuple(None if value is None else labels for value in node.outputs)
    return Passage((labels, *scales), outputs, _write, allows=allows, is_exact=len(tail) == 1)
