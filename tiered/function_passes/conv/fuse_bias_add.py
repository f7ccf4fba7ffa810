"""Add(Conv(x, weight, bias), offset)  =>  Conv(x, weight, bias + offset), also behind a Squeeze"""

import numpy as np
from numpy.typing import NDArray

from tiered import (
    Constant,
    Graph,
    Node,
    Skip,
    Value,
    const,
    non_negative_axes,
    op,
    opt,
    rewrite,
    var,
)

_conv = op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv") | op.ConvTranspose(
    var.x, var.weight, opt.bias, attrs=...
).bind("conv")


@rewrite(
    op.Add(_conv | op.Squeeze(_conv, const(name="axes")), const(name="offset")),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def fuse_bias_add(
    graph: Graph,
    conv: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    offset: Constant,
    axes: Constant | None,
) -> Value | Skip:
    """Fold an addend per channel into the bias of the convolution.

    Shapes align from the right: for an image, an addend per channel is [C, 1, 1]. One of shape [C]
    is added along its rows, or after a Squeeze of the two spatial axes to its channels.
    """
    if not weight.is_float:
        return Skip("the dtype is not a float")
    shape = weight.static_shape
    if shape is None or len(shape) < 3:
        return Skip("the shape of the weight is not known")
    old = None if bias is None else bias.const
    if bias is not None and old is None:
        return Skip("the bias is not a constant")
    channels = shape[0] if conv.op_type == "Conv" else shape[1] * int(conv.attr("group"))
    unsqueezed = _unsqueezed(offset.const, axes, len(shape))
    added = None if unsqueezed is None else per_channel(unsqueezed, channels, len(shape))
    if added is None:
        return Skip("the addend is not per channel")
    if old is not None:
        summed = old.astype(np.float64) + added.astype(np.float64)
        with np.errstate(over="ignore"):
            added = summed.astype(added.dtype)
        if not np.isfinite(added.astype(np.float64)).all():
            return Skip("the sum with the bias is not finite")
    name = offset.name if bias is None else bias.name
    biased: Value = graph.op.like(conv, x, weight, graph.constant(added, name))
    return biased if axes is None else graph.op.Squeeze(biased, axes)


def _unsqueezed(
    offset: NDArray[np.generic], axes: Constant | None, rank: int
) -> NDArray[np.generic] | None:
    """Return the offset as it broadcasts onto the tensor before a Squeeze; None if it does not."""
    if axes is None:
        return offset
    gone = tuple({*(non_negative_axes(axes.const.ravel(), rank) or ())})
    missing = rank - len(gone) - offset.ndim
    if not gone or missing < 0:
        return None
    return np.expand_dims(offset.reshape((1,) * missing + offset.shape), gone)


def per_channel(
    offset: NDArray[np.generic], channels: int, rank: int
) -> NDArray[np.generic] | None:
    """Return the addend of each channel, None if it differs within a channel.

    Args:
        offset: broadcast onto [N, channels, *spatial].
        channels: the size of axis 1.
        rank: the rank of the convolution's output.

    Returns:
        [channels], in the offset's dtype.
    """
    sizes = (1,) * (rank - offset.ndim) + offset.shape
    if len(sizes) != rank or sizes[1] not in (1, channels) or offset.size != sizes[1]:
        return None
    return np.broadcast_to(offset.ravel(), (channels,)).copy()
