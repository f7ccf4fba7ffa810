"""Standard operators over the reals, by what the standard says that they compute."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx

from tiered.certify.definitions.attention_definition import (
    attend,
    joined_heads,
    split_heads,
    turned,
)
from tiered.certify.definitions.composed import Composed, Rule
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor, class_of
from tiered.certify.reals.softmax import without_shifts

HIDING: Final = 1e4
"""Masks hide keys by numbers of this size and larger ones."""
INT64: Final = int(onnx.TensorProto.INT64)


def _is_open(call: EvaluatedCall) -> bool:
    return call.operand(0).known is None


def hard_sigmoid(call: EvaluatedCall) -> Results:
    """Max(0, Min(1, alpha * x + beta))."""
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    return [_hard(make, x, call.get("alpha", 0.2), call.get("beta", 0.5))]


def _hard(make: Composed, x: CheckedTensor, alpha: float, beta: float) -> CheckedTensor:
    scaled = make("Add", make("Mul", x, make.scalar(alpha, x)), make.scalar(beta, x))
    return make("Clip", scaled, make.scalar(0, x), make.scalar(1, x))


def hard_swish(call: EvaluatedCall) -> Results:
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    return [make("Mul", x, _hard(make, x, 1 / 6, 0.5))]


def mish(call: EvaluatedCall) -> Results:
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    return [make("Mul", x, make("Tanh", make("Softplus", x)))]


def softsign(call: EvaluatedCall) -> Results:
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    return [make("Div", x, make("Add", make("Abs", x), make.scalar(1, x)))]


def softmax(call: EvaluatedCall) -> Results:
    """Exp(x - m) / sum(Exp(x - m)), where m is the largest one."""
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    axis = call.get("axis", -1 if call.opset >= 13 else 1) % max(x.rank, 1)
    axes = [axis] if call.opset >= 13 else [*range(axis, x.rank)]
    over = make.known(np.asarray(axes, np.int64), INT64)
    exponential = make("Exp", make("Sub", x, make("ReduceMax", x, over)))
    return [make("Div", exponential, make("ReduceSum", exponential, over))]


def log_softmax(call: EvaluatedCall) -> Results:
    """Log(Softmax(x)), as the standard has it."""
    if not _is_open(call):
        raise NoRule
    make = Composed(call, call.opset)
    return [make("Log", make("Softmax", call.operand(0), **call.attributes))]


def instance_normalization(call: EvaluatedCall) -> Results:
    """(x - mean) / Sqrt(variance + epsilon) * scale + bias, for each channel."""
    if not _is_open(call):
        raise NoRule
    make, x = Composed(call), call.operand(0)
    axes = make.known(np.arange(2, x.rank, dtype=np.int64), INT64)
    shape = make.known(np.asarray([-1, *[1] * (x.rank - 2)], np.int64), INT64)
    centred = make("Sub", x, make("ReduceMean", x, axes))
    variance = make("ReduceMean", make("Mul", centred, centred), axes)
    epsilon = make.known(np.asarray(call.get("epsilon", 1e-5), np.float32), x.dtype)
    root = make("Sqrt", make("Add", variance, epsilon))
    scale, bias = (make("Reshape", call.operand(at), shape) for at in (1, 2))
    return [make("Add", make("Mul", make("Div", centred, root), scale), bias)]


def conv_transpose(call: EvaluatedCall) -> Results:
    """A Conv of the input with zeros between its elements, by the kernel from its end."""
    x, w = call.operand(0), call.operand(1)
    if not _is_open(call) or w.known is None or call.has(2) or "output_shape" in call.attributes:
        if call.has(2) and w.known is not None and _is_open(call):
            return _with_bias(call)
        raise NoRule
    rank = x.rank - 2
    if call.get("auto_pad", "NOTSET") != "NOTSET":
        raise NoRule
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    pads = call.get("pads") or [0] * 2 * rank
    more = call.get("output_padding") or [0] * rank
    kernel, group = w.shape[2:], call.get("group", 1)
    reach = [(size - 1) * step for size, step in zip(kernel, dilations, strict=True)]
    ends = [
        *(far - pads[at] for at, far in enumerate(reach)),
        *(far - pads[at + rank] + more[at] for at, far in enumerate(reach)),
    ]
    if min(ends, default=0) < 0 or 0 in (x.shape[0], *x.shape[2:]):
        raise NoRule
    make = Composed(call)
    turned = np.flip(w.known, axis=tuple(range(2, rank + 2)))
    inner, outer = w.shape[0] // group, w.shape[1]
    turned = turned.reshape(group, inner, outer, *kernel).swapaxes(1, 2)
    weights = make.known(turned.reshape(group * outer, inner, *kernel), w.dtype)
    wide = make.spread(x, strides)
    return [make("Conv", wide, weights, pads=ends, dilations=dilations, group=group)]


def _with_bias(call: EvaluatedCall) -> Results:
    make, bias = Composed(call), call.operand(2)
    made = make("ConvTranspose", call.operand(0), call.operand(1), **call.attributes)
    shape = np.asarray([-1, *[1] * (made.rank - 2)], np.int64)
    return [make("Add", made, make("Reshape", bias, make.known(shape, INT64)))]


def einsum(call: EvaluatedCall) -> Results:
    """A product of two operands: labels of both sums, labels of one, and those that are summed."""
    make, equation = Composed(call), call.attributes["equation"].replace(" ", "")
    if "..." in equation or "->" not in equation or len(call.inputs) != 2:
        raise NoRule
    left, out = equation.split("->")
    names = left.split(",")
    parts = [call.operand(at) for at in (0, 1)]
    if any(len(set(each)) != len(each) for each in (*names, out)):
        raise NoRule
    sizes = dict(zip("".join(names), [s for x in parts for s in x.shape], strict=True))
    both = [n for n in names[0] if n in names[1]]
    batch, summed = [n for n in both if n in out], [n for n in both if n not in out]
    free = [[n for n in name if n not in both] for name in names]
    if any(n not in out for each in free for n in each) or not summed:
        raise NoRule
    grouped = [(batch, free[0], summed), (batch, summed, free[1])]
    matrices = []
    for x, name, groups in zip(parts, names, grouped, strict=True):
        turned = make("Transpose", x, perm=[name.index(n) for group in groups for n in group])
        shape = [int(np.prod([sizes[n] for n in group], dtype=np.int64)) for group in groups]
        wanted = make.known(np.asarray(shape, np.int64), INT64)
        matrices.append(make("Reshape", turned, wanted, allowzero=1))
    product = make("MatMul", *matrices)
    order = [*batch, *free[0], *free[1]]
    wanted = make.known(np.asarray([sizes[n] for n in order], np.int64), INT64)
    made = make("Reshape", product, wanted, allowzero=1)
    return [make("Transpose", made, perm=[order.index(n) for n in out])]


def attention(call: EvaluatedCall) -> Results:
    """Attention of queries, keys and values of four axes, with a mask of numbers or none."""
    make, (q, k, v) = Composed(call), (call.operand(at) for at in range(3))
    mask = call.operand(3) if call.has(3) else None
    if q.rank != 4 or len(call.inputs) > 4 or any(call.node.output[1:]):
        raise NoRule
    if call.get("is_causal", 0) or call.get("softcap", 0.0) or q.shape[1] != k.shape[1]:
        raise NoRule
    if mask is not None and class_of(mask.dtype) != "float":
        raise NoRule
    if mask is not None and not _leaves_each_query_something(mask):
        # onnxruntime returns zeros for a row that is hidden, where Softmax returns NaN or a mean.
        raise NoRule
    return [attend(make, q, k, v, call.get("scale", 0.0), mask)]


def _leaves_each_query_something(bias: CheckedTensor) -> bool:
    """Return whether each row of a mask is known to have a number of usual size."""
    if bias.known is None or not bias.size or not bias.rank:
        return False
    return bool((np.abs(bias.known.astype(np.float64)) < HIDING).any(axis=-1).all())


def rotary_embedding(call: EvaluatedCall) -> Results:
    """RotaryEmbedding of the standard: angles for each place, or by the numbers of places."""
    make, x, angles = Composed(call), call.operand(0), [call.operand(at) for at in (1, 2)]
    heads, turning = call.get("num_heads", 0), call.get("rotary_embedding_dim", 0)
    if x.rank not in (3, 4) or (x.rank == 3 and not heads):
        raise NoRule
    if call.has(3):
        angles = [make("Gather", each, call.operand(3), axis=0) for each in angles]
    whole = split_heads(make, x, heads) if x.rank == 3 else x
    if angles[0].rank != 3 or 2 * angles[0].shape[2] != (turning or whole.shape[3]):
        raise NoRule
    made = turned(make, whole, angles, is_interleaved=bool(call.get("interleaved", 0)))
    return [made if x.rank == 4 else joined_heads(make, made)]


DEFINITIONS: Final[dict[str, Rule]] = {
    "ConvTranspose": conv_transpose,
    "Attention": attention,
    "Einsum": einsum,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "InstanceNormalization": instance_normalization,
    "LogSoftmax": log_softmax,
    "Mish": mish,
    "RotaryEmbedding": rotary_embedding,
    "Softmax": without_shifts(softmax),
    "Softsign": softsign,
}
