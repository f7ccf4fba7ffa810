"""BatchNormalization(Conv(x, weight, bias))  =>  Conv(x, weight', bias')"""

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from tiered import (
    Graph,
    Model,
    Node,
    ShapeError,
    Size,
    Skip,
    Value,
    op,
    opt,
    rewrite,
    size_in_bytes,
    var,
)
from tiered.rewriter.idioms.normalization import BatchNorm, batch_norm_of, batch_norm_pattern
from tiered.rewriter.idioms.scale import loses_digits

_conv = op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv") | op.ConvTranspose(
    var.x, var.weight, opt.bias, attrs=...
).bind("conv")


@rewrite(
    batch_norm_pattern(_conv),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def fuse_bn_into_conv(
    graph: Graph,
    node: Node,
    conv: Node,
    x: Value,
    weight: Value,
    bias: Value | None,
    *,
    max_growth: Size = Size("1%"),
) -> Value | Skip:
    """Scale the kernel and shift the bias of the convolution by the batch norm.

    A weight with other consumers is copied for all convolutions that share it, or for none.

    Args:
        max_growth: the most growth by all copies, in bytes or as a share of the model; at least
            4 KiB.
    """
    norm = batch_norm_of(node)
    if isinstance(norm, Skip):
        return norm
    kernel, offset = weight.const, None if bias is None else bias.const
    if kernel is None or (bias is not None and offset is None):
        return Skip("weight or bias is not a constant")
    transposed, groups = conv.op_type == "ConvTranspose", int(conv.attr("group"))
    try:
        fused = absorb_batch_norm(kernel, offset, norm, groups=groups, transposed=transposed)
    except ShapeError as error:
        return Skip("{}", error)
    if not all(np.isfinite(array.astype(np.float64)).all() for array in fused):
        return Skip("the fused weights are not finite")
    wide = kernel.astype(np.float64)
    if loses_digits(
        kernel,
        fused[0],
        lambda: absorb_batch_norm(wide, None, norm, groups=groups, transposed=transposed)[0],
    ):
        return Skip("the fused weights lose precision by underflow")
    model = graph.model
    if not weight.has_one_user and model.analysis(_bytes_of_copies) > max(
        size_in_bytes(max_growth, model.nbytes), 4096
    ):
        return Skip("copies of the shared weight exceed max_growth")
    names = weight.name, f"{weight.name}_bias" if bias is None else bias.name
    return graph.op.like(conv, x, *map(graph.constant, fused, names))


def _bytes_of_copies(model: Model) -> int:
    """Return the bytes of copies if each convolution with a batch norm has its own weight."""
    shared: defaultdict[Value, int] = defaultdict(int)
    for graph in model.graphs():
        for norm in graph.nodes_of("BatchNormalization"):
            conv = norm.producer(0)
            if conv is not None and conv.op_type in ("Conv", "ConvTranspose"):
                shared[conv.given(1)] += 1
    copies = {weight: count - (count == weight.n_users) for weight, count in shared.items()}
    return sum(weight.tensor.nbytes * count for weight, count in copies.items() if weight.tensor)


def absorb_batch_norm(
    weight: NDArray[np.generic],
    bias: NDArray[np.generic] | None,
    norm: BatchNorm,
    *,
    groups: int = 1,
    transposed: bool = False,
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return the convolution weights that absorb the batch norm after them.

    Per output channel: weight' = factor * weight  and  bias' = factor * (bias - mean) + shift.

    Args:
        weight: kernel, float [C_out, C_in / groups, *kernel]; for a transposed convolution
            [C_in, C_out / groups, *kernel].
        bias: float [C_out]; None means zeros.
        norm: the batch norm of C_out channels.
        groups: number of groups of the convolution.
        transposed: whether it is a ConvTranspose.

    Returns:
        (weight', bias'), shapes and dtype as weight and bias; computed in float64 and rounded once.

    Raises:
        ShapeError: a vector is not of length C_out, or the groups do not divide the channels.
    """
    if weight.ndim < 2 or groups < 1 or weight.shape[0] % groups:
        raise ShapeError(f"a weight of shape {weight.shape} has no {groups} groups")
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    bias = np.zeros(channels, weight.dtype) if bias is None else bias
    for vector in (bias, norm.factor):
        if vector.shape != (channels,):
            raise ShapeError(f"a vector has shape {vector.shape}; expected ({channels},)")
    if transposed:
        # Channels of the output are split over the groups of the input: [groups, C_in/groups, ...].
        inner = weight.shape[0] // groups, *weight.shape[1:]
        grouped = weight.astype(np.float64).reshape(groups, *inner)
        spread = norm.factor.reshape(groups, 1, weight.shape[1], *[1] * (weight.ndim - 2))
        kernel = (grouped * spread).reshape(weight.shape)
    else:
        kernel = weight.astype(np.float64) * norm.factor.reshape(channels, *[1] * (weight.ndim - 1))
    with np.errstate(over="ignore"):
        # Overflow to infinity is checked by the callers.
        return kernel.astype(weight.dtype), norm.of(bias.astype(np.float64)).astype(weight.dtype)
