"""Rules of elementwise operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Kernel,
    Permuted,
    Propagation,
    rank_of,
    whole,
)
from tiered.graph import Node, Value
from tiered.graph.queries.determinism import is_deterministic
from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.rewriter import Skip


@LAYOUTS.rule(
    "Gelu", "QuickGelu", "QLinearSigmoid", "QLinearLeakyRelu", domain="com.microsoft"
)
@LAYOUTS.rule(*(name for name in UNARY if name != "Dropout"))
def unary(node: Node) -> Propagation | Skip:
    """Return the propagation of a unary elementwise operator: any order is allowed."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    others = node.inputs[1:]
    if node.op_type != "CastLike" and any(value and value.rank != 0 for value in others):
        return Skip("an operand beside the first one is no scalar")
    return _unary(rank, len(others), len(node.outputs))


@LAYOUTS.rule("Dropout")
def dropout(node: Node) -> Propagation | Skip:
    """Dropout: in inference only; in training its random mask depends on the order."""
    # Before opset 7 it trains by default.
    if not is_deterministic(node) or (node.version < 7 and node.attr("is_test") != 1):
        return Skip("it is in training mode")
    return unary(node)


@lru_cache
def _unary(rank: int, others: int, outputs: int) -> Propagation:
    labels = whole(rank)
    return Propagation((labels, *(None,) * others), (labels,) * outputs, _write_unary)


def _write_unary(op: Permuted) -> Sequence[Value]:
    return op.emit({0: op.operand(0)})


@LAYOUTS.rule(*BROADCASTING)
def broadcasting(node: Node) -> Propagation | Skip:
    """Return the propagation of an operator whose operands broadcast to one shape."""
    return broadcasting_at(node, range(len(node.inputs)))


def broadcasting_at(node: Node, slots: Sequence[int]) -> Propagation | Skip:
    """Return the propagation of an operator whose given operands broadcast; others are fixed."""
    ranks: list[int | None] = [None] * len(node.inputs)
    for slot in slots:
        rank = ranks[slot] = rank_of(node, slot)
        if rank is None:
            return NO_RANK
    return _broadcasting(tuple(ranks))


@lru_cache
def _broadcasting(ranks: tuple[int | None, ...]) -> Propagation:
    labels = whole(max(rank for rank in ranks if rank is not None))
    inputs = tuple(None if rank is None else labels[len(labels) - rank :] for rank in ranks)
    return Propagation(inputs, (labels,), _write_broadcasting, kernel=Kernel("broadcast"))


def _write_broadcasting(op: Permuted) -> Sequence[Value]:
    (target,) = op.propagation.outputs
    assert target is not None
    slots = [slot for slot, labels in enumerate(op.propagation.inputs) if labels is not None]
    return op.emit({slot: op.aligned(slot, target) for slot in slots})


@LAYOUTS.rule("QLinearAdd", "QLinearMul", domain="com.microsoft")
def quantized_binary(node: Node) -> Propagation | Skip:
    """QLinearAdd and QLinearMul: inputs 0 and 3 broadcast; others are scales, zero points."""
    return broadcasting_at(node, (0, 3))


@LAYOUTS.rule("QuantizeLinear", "DequantizeLinear", domain=("", "com.microsoft"))
def quantization(node: Node) -> Propagation | Skip:
    """QuantizeLinear and DequantizeLinear: per tensor, per axis, or per block."""
    rank, scale_rank = rank_of(node), rank_of(node, 1)
    if rank is None or scale_rank is None:
        return NO_RANK
    labels, axis = whole(rank), node.attr("axis", 1)
    scale: tuple[int, ...] | None = None
    if scale_rank == rank and node.attr("block_size", 0):
        scale = labels
    elif scale_rank > 1:
        return Skip("its scale is neither a scalar nor 1-D")
    elif scale_rank == 1 and not -rank <= axis < rank:
        return Skip("its axis is out of range")
    others = tuple(scale for value in node.inputs[1:])
    return Propagation((labels, *others), (labels,), _write_quantization)


def _write_quantization(op: Permuted) -> Sequence[Value]:
    labels = op.propagation.own(0)
    slots = [slot for slot, own in enumerate(op.propagation.inputs) if own is not None]
    operands = {slot: op.operand(slot) for slot in slots}
    if rank_of(op.node, 1) == 0:
        return op.emit(operands)
    return op.emit(operands, axis=op.moved(labels, op.node.attr("axis", 1)))
