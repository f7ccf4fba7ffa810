"""Attention and rotary embeddings of com.microsoft over the reals, by standard operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnx

from tiered.certify.definitions.composed import Composed, Rule, optional
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor

INT64: Final = int(onnx.TensorProto.INT64)


def _ints(make: Composed, *numbers: int) -> CheckedTensor:
    return make.known(np.asarray(numbers, np.int64), INT64)


def split_heads(make: Composed, x: CheckedTensor, heads: int) -> CheckedTensor:
    """Return [batch, sequence, heads * size] as [batch, heads, sequence, size]."""
    if x.rank == 4:
        return x
    batch, length, width = x.shape
    if width % heads:
        raise NoRule
    parts = make("Reshape", x, _ints(make, batch, length, heads, width // heads), allowzero=1)
    return make("Transpose", parts, perm=[0, 2, 1, 3])


def joined_heads(make: Composed, x: CheckedTensor) -> CheckedTensor:
    """Return [batch, heads, sequence, size] as [batch, sequence, heads * size]."""
    batch, heads, length, size = x.shape
    turned = make("Transpose", x, perm=[0, 2, 1, 3])
    return make("Reshape", turned, _ints(make, batch, length, heads * size), allowzero=1)


def attend(
    make: Composed,
    q: CheckedTensor,
    k: CheckedTensor,
    v: CheckedTensor,
    scale: float,
    bias: CheckedTensor | None,
) -> CheckedTensor:
    """Return softmax(q @ k' * scale + bias) @ v, of [batch, heads, sequence, size]."""
    scale = scale or float(1 / np.sqrt(q.shape[3] or 1))
    product = make("MatMul", q, make("Transpose", k, perm=[0, 1, 3, 2]))
    scores = make("Mul", product, make.scalar(scale, product))
    scores = scores if bias is None else make("Add", scores, bias)
    return make("MatMul", make("Softmax", scores, axis=-1), v)


def multi_head_attention(call: EvaluatedCall) -> Results:
    """MultiHeadAttention without a padding mask, a past or packed operands."""
    make, heads = Composed(call), call.attributes["num_heads"]
    if any(call.has(at) for at in (4, 6, 7, 8, 9)) or call.get("unidirectional", 0):
        raise NoRule
    if not (call.has(1) and call.has(2)) or any(call.node.output[1:]):
        raise NoRule
    q, k, v = (call.operand(at) for at in range(3))
    bias = optional(call, 3)
    if bias is not None:
        q, k, v = _biased(make, (q, k, v), bias)
    q, k, v = (split_heads(make, x, heads) for x in (q, k, v))
    made = attend(make, q, k, v, call.get("scale", 0.0), optional(call, 5))
    return [joined_heads(make, made), *[None] * (len(call.node.output) - 1)]


def _biased(
    make: Composed, parts: tuple[CheckedTensor, ...], bias: CheckedTensor
) -> tuple[CheckedTensor, ...]:
    made: list[CheckedTensor] = []
    start = 0
    for x in parts:
        if x.rank != 3:
            raise NoRule
        end = start + x.shape[2]
        part = make("Slice", bias, _ints(make, start), _ints(make, end))
        made.append(make("Add", x, part))
        start = end
    return tuple(made)


def attention(call: EvaluatedCall) -> Results:
    """Attention of one operand that is projected; no mask, no past, one size for all heads."""
    make, heads = Composed(call), call.attributes["num_heads"]
    if any(call.has(at) for at in (3, 4, 6)) or call.get("unidirectional", 0):
        raise NoRule
    if call.get("do_rotary", 0) or any(call.node.output[1:]):
        raise NoRule
    x = make("MatMul", call.operand(0), call.operand(1))
    bias = optional(call, 2)
    x = x if bias is None else make("Add", x, bias)
    sizes = call.get("qkv_hidden_sizes") or [x.shape[2] // 3] * 3
    ends = np.cumsum(sizes)
    q, k, v = (
        split_heads(
            make,
            make("Slice", x, _ints(make, int(end) - size), _ints(make, int(end)), _ints(make, 2)),
            heads,
        )
        for end, size in zip(ends, sizes, strict=True)
    )
    made = attend(make, q, k, v, call.get("scale", 0.0), optional(call, 5))
    return [joined_heads(make, made), *[None] * (len(call.node.output) - 1)]


def rotary_embedding(call: EvaluatedCall) -> Results:
    """RotaryEmbedding: halves (or pairs) of each head turned by the angles of its position."""
    make, x = Composed(call), call.operand(0)
    positions, cos, sin = (call.operand(at) for at in (1, 2, 3))
    if call.get("is_packed_batching", 0) or x.rank not in (3, 4):
        raise NoRule
    turning, heads = call.get("rotary_embedding_dim", 0), call.get("num_heads", 0)
    size = 2 * cos.shape[1]
    if turning and turning != size:
        raise NoRule
    if x.rank == 3:
        heads = heads or x.shape[2] // size
        whole = split_heads(make, x, heads)
    else:
        whole = x
    if whole.shape[3] < size or (whole.shape[3] > size and not turning):
        raise NoRule
    length = whole.shape[2]
    if positions.size == 1:
        places = make("Add", make.known(np.arange(length, dtype=np.int64), INT64), positions)
        places = make("Reshape", places, _ints(make, 1, length), allowzero=1)
    else:
        places = positions
    angles = [make("Gather", each, places, axis=0) for each in (cos, sin)]
    made = turned(make, whole, angles, is_interleaved=bool(call.get("interleaved", 0)))
    return [made if x.rank == 4 else joined_heads(make, made)]


def turned(
    make: Composed, whole: CheckedTensor, angles: Sequence[CheckedTensor], *, is_interleaved: bool
) -> CheckedTensor:
    """Return heads whose halves, or pairs, are turned.

    Args:
        make: makes results.
        whole: [batch, heads, length, width].
        angles: cosines and sines, [batch or 1, length, size / 2]; what is wider than size stays.
        is_interleaved: whether pairs are turned.
    """
    batch, heads, length, width = whole.shape
    size = 2 * angles[0].shape[-1]
    cos, sin = (make("Unsqueeze", each, _ints(make, 1)) for each in angles)
    part = make("Slice", whole, _ints(make, 0), _ints(make, size), _ints(make, 3))
    if is_interleaved:
        one, other = (
            make("Slice", part, _ints(make, at), _ints(make, size), _ints(make, 3), _ints(make, 2))
            for at in (0, 1)
        )
    else:
        one, other = (
            make("Slice", part, _ints(make, start), _ints(make, end), _ints(make, 3))
            for start, end in ((0, size // 2), (size // 2, size))
        )
    first = make("Sub", make("Mul", one, cos), make("Mul", other, sin))
    second = make("Add", make("Mul", other, cos), make("Mul", one, sin))
    if is_interleaved:
        shape = _ints(make, batch, heads, length, size)
        pairs = [make("Unsqueeze", each, _ints(make, 4)) for each in (first, second)]
        made = make("Reshape", make("Concat", *pairs, axis=4), shape, allowzero=1)
    else:
        made = make("Concat", first, second, axis=3)
    if width > size:
        rest = make("Slice", whole, _ints(make, size), _ints(make, width), _ints(make, 3))
        made = make("Concat", made, rest, axis=3)
    return made


ATTENTION: Final[dict[str, Rule]] = {
    "com.microsoft::Attention": attention,
    "com.microsoft::MultiHeadAttention": multi_head_attention,
    "com.microsoft::RotaryEmbedding": rotary_embedding,
}
