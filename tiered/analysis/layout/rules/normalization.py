"""Rules of normalizations: the positions of normalised axes and of channels are fixed."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Labels,
    Permuted,
    Propagation,
    rank_of,
    whole,
)
from tiered.analysis.layout.rules.axes import followed_operands
from tiered.graph import Node, Value
from tiered.rewriter import Skip


def _write(op: Permuted) -> Sequence[Value]:
    return op.emit(followed_operands(op))


@LAYOUTS.rule("BatchNormalization", "LRN")
def batch_normalization(node: Node) -> Propagation | Skip:
    """BatchNormalization and LRN: channels stay axis 1; other axes may be permuted."""
    rank = rank_of(node)
    if rank is None or rank < 2:
        return NO_RANK
    if node.attr("training_mode", 0) or len(node.outputs) > 1:
        return Skip("it is in training mode")
    labels = whole(rank)
    others = tuple(None for _ in node.inputs[1:])
    return Propagation((labels, *others), (labels,), _write, allows=lambda order: order[1] == 1)


@LAYOUTS.rule("GroupNormalization", "InstanceNormalization")
def instance_normalization(node: Node) -> Propagation | Skip:
    """InstanceNormalization and GroupNormalization: only spatial axes may be permuted."""
    rank = rank_of(node)
    if rank is None or rank < 2:
        return NO_RANK
    labels = whole(rank)
    others = tuple(None for _ in node.inputs[1:])
    return Propagation(
        (labels, *others),
        (labels,),
        _write,
        allows=lambda order: order[:2] == (0, 1),
        is_exact=False,
    )


@LAYOUTS.rule("LayerNormalization", "RMSNormalization")
def layer_normalization(node: Node) -> Propagation | Skip:
    """LayerNormalization and RMSNormalization: the normalised axes stay last.

    If the normalised axes are permuted, scale and bias are permuted too.
    """
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    labels, start = whole(rank), node.attr("axis", -1) % rank
    tail = labels[start:]
    ranks = [None if value is None else value.rank for value in node.inputs[1:]]
    for value, width in zip(node.inputs[1:], ranks, strict=True):
        if value is not None and (width is None or width > len(tail)):
            return Skip("scale or bias may exceed the normalised dims")
    movable = all(width in (None, len(tail)) for width in ranks)
    scales = tuple(tail if width == len(tail) else None for width in ranks)

    def allows(order: Labels) -> bool:
        last = order[start:]
        return last == tail or (movable and set(last) == set(tail))

    outputs = tuple(None if value is None else labels for value in node.outputs)
    return Propagation((labels, *scales), outputs, _write, allows=allows, is_exact=len(tail) == 1)
