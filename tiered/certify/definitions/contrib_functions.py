"""Operators of com.microsoft on bits: functions of their operands, with the types of their results.

onnx infers no types of them. Without these, nothing that reads their results would have terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.problem import content_of
from tiered.graph.core.types import TensorType, tensor_type

Rule = Callable[[EvaluatedCall], Results]
Types = Callable[[EvaluatedCall], list[TensorType | None]]


def _like(x: CheckedTensor) -> TensorType:
    return tensor_type(x.dtype, x.shape)


def first(call: EvaluatedCall) -> list[TensorType | None]:
    """The result has the type of the first operand."""
    return [_like(call.operand(0))]


def _joined(one: CheckedTensor, other: CheckedTensor, dtype: int) -> list[TensorType | None]:
    return [tensor_type(dtype, np.broadcast_shapes(one.shape, other.shape))]


def binary(call: EvaluatedCall) -> list[TensorType | None]:
    """QLinearAdd and QLinearMul: two operands, each with a scale and a zero point."""
    return _joined(call.operand(0), call.operand(3), call.operand(0).dtype)


def skip_normalization(call: EvaluatedCall) -> list[TensorType | None]:
    x = call.operand(0)
    return [_like(x), None, None, _like(x)]


def fused_matmul(call: EvaluatedCall) -> list[TensorType | None]:
    a, b = ([*call.operand(at).shape] for at in (0, 1))
    if len(a) < 2 or len(b) < 2:
        raise NoRule
    a = [*a[1:-1], a[0], a[-1]] if call.get("transBatchA", 0) else a
    b = [*b[1:-1], b[0], b[-1]] if call.get("transBatchB", 0) else b
    a = [*a[:-2], a[-1], a[-2]] if call.get("transA", 0) else a
    b = [*b[:-2], b[-1], b[-2]] if call.get("transB", 0) else b
    shape = (*np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2])), a[-2], b[-1])
    return [tensor_type(call.operand(0).dtype, shape)]


def multi_head_attention(call: EvaluatedCall) -> list[TensorType | None]:
    q = call.operand(0)
    value = call.operand(2) if call.has(2) else None
    if q.rank != 3 or value is None or value.rank not in (3, 4):
        raise NoRule
    size = value.shape[2] if value.rank == 3 else value.shape[1] * value.shape[3]
    return [tensor_type(q.dtype, (*q.shape[:2], size))]


def group_query_attention(call: EvaluatedCall) -> list[TensorType | None]:
    q = call.operand(0)
    if not call.has(1):
        raise NoRule
    return [_like(q)]


def pooled(call: EvaluatedCall) -> list[TensorType | None]:
    x = call.operand(0)
    if call.get("channels_last", 0):
        raise NoRule
    return [tensor_type(x.dtype, (*x.shape[:2], *[1] * (x.rank - 2)))]


def opaque_of(types: Types) -> Rule:
    """Return the rule of an operator that is a function of its operands."""

    def rule(call: EvaluatedCall) -> Results:
        names = call.node.output
        found = (*types(call), *[None] * len(names))
        held = tuple(None if x is None else x.key for x in call.inputs)
        content = content_of(call.node, with_outputs=False)
        return [
            None if not name or kind is None
            else call.scope.free(kind, ("contrib", content, at, *held))
            for at, (name, kind) in enumerate(zip(names, found, strict=False))
        ]  # fmt: skip

    return rule


TYPES: Final[dict[str, Types]] = {
    **dict.fromkeys(
        ("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "QLinearLeakyRelu", "QLinearSigmoid",
         "RotaryEmbedding"), first
    ),
    "FusedMatMul": fused_matmul,
    "GroupQueryAttention": group_query_attention,
    "MultiHeadAttention": multi_head_attention,
    "QLinearAdd": binary,
    "QLinearGlobalAveragePool": pooled,
    "QLinearMul": binary,
    "SkipLayerNormalization": skip_normalization,
    "SkipSimplifiedLayerNormalization": skip_normalization,
}  # fmt: skip
CONTRIB_ON_BITS: Final[dict[str, Rule]] = {
    f"com.microsoft::{name}": opaque_of(types) for name, types in TYPES.items()
}
