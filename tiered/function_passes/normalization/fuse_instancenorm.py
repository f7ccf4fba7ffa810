"""(x - mean) / Sqrt(variance + epsilon) over an image  =>  InstanceNormalization(x)"""

import numpy as np
from numpy.typing import NDArray

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, same_axes, var
from tiered.rewriter.idioms.normalization import layer_norm_pattern, norm_epsilon
from tiered.rewriter.idioms.signs import zero_sign_matters

_norm = op.InstanceNormalization(var.x, const(name="scale"), const(name="bias"), attrs=...).bind(
    "norm"
)


@rewrite(
    layer_norm_pattern()
    | op.Mul(_norm, const(name="factor"))
    | op.Add(_norm, const(name="offset")),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_instancenorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value | None,
    axes_of_mean: Value | None,
    epsilon: Value | None,
    norm: Node | None,
    scale: Constant | None,
    bias: Constant | None,
    factor: Constant | None,
    offset: Constant | None,
) -> Value | Skip:
    """Normalise each channel by one operator, then fold a scale and a bias into it."""
    operand = offset if factor is None else factor
    if norm is not None and scale is not None and bias is not None and operand is not None:
        return _affine(graph, x, norm, scale, bias, operand, is_factor=factor is not None)
    over = None if axes is None else axes.const
    over_of_mean = None if axes_of_mean is None else axes_of_mean.const
    if over is None or over_of_mean is None:
        return Skip("the axes are not constant")
    if x.rank is None or x.rank < 4 or not x.has_rank_of(node.output):
        return Skip("x is not an image")
    spatial = range(2, x.rank)
    if not same_axes(over_of_mean.ravel(), spatial, x.rank):
        return Skip("the mean is not over whole channels")
    if not same_axes(over.ravel(), spatial, x.rank):
        return Skip("mean and variance are over other axes")
    if x.dtype != DataType.FLOAT:
        return Skip("InstanceNormalization has no kernel for the dtype")
    added = norm_epsilon(epsilon)
    if isinstance(added, Skip):
        return added
    channels = x.dim(1)
    if not isinstance(channels, int):
        return Skip("the number of channels is not known")
    if zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
    return graph.op.InstanceNormalization(
        x,
        graph.constant(ones, "scale"),
        graph.constant(zeros, "bias"),
        epsilon=added,
    )


def _affine(
    graph: Graph,
    x: Value,
    norm: Node,
    scale: Constant,
    bias: Constant,
    operand: Constant,
    *,
    is_factor: bool,
) -> Value | Skip:
    weight, shift = scale.const, bias.const
    vector = _per_channel(operand.const, x.rank, weight.size)
    if vector is None:
        return Skip("scale or bias is not per channel")
    with np.errstate(over="ignore", invalid="ignore"):
        if is_factor:
            weight, shift = weight * vector, shift * vector
        else:
            shift = shift + vector
    if not np.isfinite(weight).all() or not np.isfinite(shift).all():
        return Skip("the folded scale or bias is not finite")
    result: Value = graph.op.InstanceNormalization(
        x, graph.constant(weight, scale.name), graph.constant(shift, bias.name), **norm.attributes
    )
    return result


def _per_channel(
    array: NDArray[np.generic], rank: int | None, channels: int
) -> NDArray[np.generic] | None:
    """Return one number per channel, None if they differ within a channel."""
    sizes = (1,) * ((rank or 0) - array.ndim) + array.shape
    if len(sizes) != rank or sizes[1] not in (1, channels):
        return None
    return np.broadcast_to(array.ravel(), (channels,)) if array.size == sizes[1] else None
