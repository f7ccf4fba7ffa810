"""BatchNormalization(Conv(x, weight, bias))  =>  Conv(x, weight', bias')"""

import numpy as np
from numpy.typing import NDArray

from tiered import Graph, Node, ShapeError, Skip, Value, op, opt, rewrite, var

_conv = op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv") | op.ConvTranspose(
    var.x, var.weight, opt.bias, attrs=...
).bind("conv")


@rewrite(
    op.BatchNormalization(
        _conv,
        var.scale,
        var.shift,
        var.mean,
        var.variance,
        epsilon=var.epsilon,
        momentum=var.momentum,
    ),
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
    scale: Value,
    shift: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
) -> Value | Skip:
    """Scale the kernel and shift the bias, so that the batch norm has nothing left to do."""
    if any(value is not None and value.is_used for value in node.outputs[1:]):
        return Skip("the running statistics are used")
    vectors = [value.const for value in (scale, shift, mean, variance)]
    kernel, offset = weight.const, None if bias is None else bias.const
    if kernel is None or (bias is not None and offset is None):
        return Skip("weight or bias is not a constant")
    vectors = [vector for vector in vectors if vector is not None]
    if len(vectors) < 4:
        return Skip("a parameter of the batch norm is not a constant")
    if not weight.has_one_user:
        return Skip("the weight is shared")
    if not (vectors[3].astype(np.float64) + epsilon > 0).all():
        return Skip("var + epsilon is not positive")
    transposed = conv.op_type == "ConvTranspose"
    groups = int(conv.attr("group"))
    channels = kernel.shape[1] * groups if transposed else kernel.shape[0]
    if offset is None:
        offset = np.zeros(channels, kernel.dtype)
    try:
        fused = absorb_batch_norm(
            kernel, offset, *vectors, epsilon=epsilon, groups=groups, transposed=transposed
        )
    except ShapeError as error:
        return Skip("{}", error)
    if not all(np.isfinite(array.astype(np.float64)).all() for array in fused):
        return Skip("the fused weights are not finite")
    new_weight, new_bias = (
        graph.constant(array, name)
        for array, name in zip(fused, (weight.name, f"{weight.name}_bias"), strict=True)
    )
    build = graph.op.ConvTranspose if transposed else graph.op.Conv
    return build(x, new_weight, new_bias, **conv.attributes)


def absorb_batch_norm(
    weight: NDArray[np.generic],
    bias: NDArray[np.generic],
    scale: NDArray[np.generic],
    shift: NDArray[np.generic],
    mean: NDArray[np.generic],
    var: NDArray[np.generic],
    *,
    epsilon: float,
    groups: int = 1,
    transposed: bool = False,
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Return the convolution weights that absorb the batch norm after them.

    Per output channel, with k = scale / sqrt(var + epsilon):
    weight' = k * weight  and  bias' = k * (bias - mean) + shift.

    Args:
        weight: kernel, float [C_out, C_in / groups, *kernel]; for a transposed convolution
            [C_in, C_out / groups, *kernel].
        bias: float [C_out]; zeros where the convolution has none.
        scale, shift, mean, var: the batch norm's inputs 1 to 4, float [C_out].
        epsilon: added to var, in its unit (schema default 1e-5).
        groups: number of groups of the convolution.
        transposed: whether it is a ConvTranspose.

    Returns:
        (weight', bias'), same shapes and dtype; computed in float64 and rounded once.

    Raises:
        ShapeError: a vector is not of length C_out.

    Source: ONNX BatchNormalization-15, inference form; Ioffe & Szegedy 2015, algorithm 2, step 11.
    """
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    for vector in (bias, scale, shift, mean, var):
        if vector.shape != (channels,):
            raise ShapeError(f"a vector has shape {vector.shape}; expected ({channels},)")
    b, s, t, m, v = (vector.astype(np.float64) for vector in (bias, scale, shift, mean, var))
    factor = s / np.sqrt(v + epsilon)
    if transposed:
        # Channels of the output are split over the groups of the input: [groups, C_in/groups, ...].
        grouped = weight.astype(np.float64).reshape(groups, -1, *weight.shape[1:])
        spread = factor.reshape(groups, 1, -1, *[1] * (weight.ndim - 2))
        kernel = (grouped * spread).reshape(weight.shape)
    else:
        kernel = weight.astype(np.float64) * factor.reshape(-1, *[1] * (weight.ndim - 1))
    return kernel.astype(weight.dtype), (factor * (b - m) + t).astype(weight.dtype)
