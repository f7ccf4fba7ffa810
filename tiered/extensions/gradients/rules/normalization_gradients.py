"""Gradients of normalizations; those without a function body in ONNX as other operators."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.extensions.gradients.broadcast import reduced_to
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion, gradient_rule
from tiered.graph import DataType


def _per_channel(vector: Expr, rank: int) -> Expr:
    """Return a vector [C] in the shape [C, 1, ...] that broadcasts into [N, C, *spatial]."""
    return vector.unsqueeze(list(range(1, rank - 1)))


@gradient_rule("LayerNormalization")
def layer_normalization(step: Step) -> Sequence[Expr | None]:
    """dx = (d - mean(d) - n mean(d n)) / s, with n = (x - mean(x)) / s and d = scale g

    s^2 is the variance of x, and epsilon. dscale and dB are the sums of g n and g. The outputs
    mean(x) and 1 / s add gm / N - gs n / (s^2 N), of N elements.
    """
    node, scale = step.node, step.operand(1)
    stash, own = DataType(int(node.attr("stash_type"))), step.x.dtype
    x = step.x.cast(own if own == DataType.DOUBLE else stash)
    axis = int(node.attr("axis"))
    axes = list(range(axis, 0 if axis < 0 else x.rank))
    centred = x - _mean(x, axes)
    variance = _mean(centred * centred, axes)
    deviation = x.call("Sqrt", variance + float(node.attr("epsilon")))
    n, g = centred / deviation, step.g.cast(x.dtype)
    dx = dscale = dbias = None
    if step.wants(0):
        d = g * scale.cast(x.dtype)
        dx = (d - _mean(d, axes) - n * _mean(d * n, axes)) / deviation
        for at, grad in enumerate(step.grads[1:3]):
            if grad is not None:
                part = grad.cast(x.dtype) / _count(x, deviation)
                dx = dx - part * n / (deviation * deviation) if at else dx + part
        dx = dx.cast(own)
    if step.wants(1):
        dscale = reduced_to(g * n, scale).cast(scale.dtype)
    if step.wants(2):
        dbias = reduced_to(step.g, step.operand(2))
    return dx, dscale, dbias


@expansion("BatchNormalization")
def batch_normalization(step: Step) -> Sequence[Expr | None]:
    """y = (x - mean) * scale / sqrt(var + epsilon) + B, with those of the batch in training"""
    x, rank = step.x, step.x.rank
    scale, bias = (_per_channel(step.operand(at), rank) for at in (1, 2))
    running: list[Expr] = []
    if int(step.node.attr("training_mode", 0)):
        axes = [0, *range(2, rank)]
        mean = _mean(x, axes)
        var = _mean((x - mean) * (x - mean), axes)
        momentum = float(step.node.attr("momentum"))
        running = [
            step.operand(at) * momentum + now.reshape([-1]) * (1 - momentum)
            for at, now in ((3, mean), (4, var))
        ]
    elif len(step.outputs) > 1:
        raise step.error("it is in training mode")
    else:
        mean, var = (_per_channel(step.operand(at), rank) for at in (3, 4))
    deviation = var.call("Sqrt", var + float(step.node.attr("epsilon")))
    return [(x - mean) * (scale / deviation) + bias, *running]


@expansion("InstanceNormalization")
def instance_normalization(step: Step) -> Sequence[Expr | None]:
    """y = scale * (x - mean(x)) / sqrt(variance(x) + epsilon) + B, over the spatial axes"""
    x, rank = step.x, step.x.rank
    axes = list(range(2, rank))
    scale, bias = (_per_channel(step.operand(at), rank) for at in (1, 2))
    centred = x - _mean(x, axes)
    deviation = x.call("Sqrt", _mean(centred * centred, axes) + float(step.node.attr("epsilon")))
    return (scale * (centred / deviation) + bias,)


@expansion("LpNormalization")
def lp_normalization(step: Step) -> Sequence[Expr | None]:
    """y = x / |x|_p, along one axis; 0 where the norm is 0"""
    x, axis = step.x, int(step.node.attr("axis")) % step.x.rank
    reduce = "ReduceL1" if int(step.node.attr("p")) == 1 else "ReduceL2"
    norm = x.call(reduce, x, x.integers([axis]), keepdims=1)
    is_zero = norm.equals(0.0)
    return (is_zero.select(x.zeros(), x / is_zero.select(norm.ones(), norm)),)


@expansion("LRN")
def lrn(step: Step) -> Sequence[Expr | None]:
    """y = x / (bias + alpha / size * the sum of squares of neighbouring channels) ^ beta"""
    node, x = step.node, step.x
    size, rank = int(node.attr("size")), step.x.rank
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = x * x
    pads = [0, before] + [0] * (rank - 2) + [0, after] + [0] * (rank - 2)
    padded = squares.call("Pad", squares, squares.integers(pads))
    channels = x.dim(1)
    shifted = [
        padded.call("Slice", padded, [at], channels + padded.integers([at]), [1])
        for at in range(size)
    ]
    total = padded.call("Sum", *shifted)
    base = total * (float(node.attr("alpha")) / size) + float(node.attr("bias"))
    return (x / base ** float(node.attr("beta")),)


@expansion("GlobalLpPool")
def global_lp_pool(step: Step) -> Sequence[Expr | None]:
    """y = (the sum of |x| ^ p over the spatial axes) ^ (1 / p)"""
    x, power = step.x, float(step.node.attr("p"))
    total = (x.call("Abs", x) ** power).sum(range(2, x.rank))
    return (total.root(power),)


def _count(x: Expr, reduced: Expr) -> Expr:
    """Return how many elements of x each mean is of."""
    return x.call("Size", x).cast(x.dtype) / x.call("Size", reduced).cast(x.dtype)


def _mean(x: Expr, axes: Sequence[int]) -> Expr:
    return x.call("ReduceMean", x, x.integers(axes), keepdims=1)
