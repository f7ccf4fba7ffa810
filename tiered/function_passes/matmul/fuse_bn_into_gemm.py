"""BatchNormalization(Gemm(a, weight, c))  =>  Gemm(a, weight', c'), also of a MatMul"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var

_product = (op.MatMul(var.a, var.weight) | op.Gemm(var.a, var.weight, opt.c, attrs=...)).bind(
    "product"
)


@rewrite(
    op.BatchNormalization(
        _product,
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
def fuse_bn_into_gemm(
    graph: Graph,
    node: Node,
    product: Node,
    a: Value,
    weight: Value,
    c: Value | None,
    scale: Value,
    shift: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
) -> Value | Skip:
    """Scale the columns of the weight and shift what is added to them.

    The channels of a product of more than two dims are not its columns, so only matrices.
    """
    if any(value is not None for value in node.outputs[1:]):
        return Skip("with further outputs it is in training mode")
    if product.has_references:
        return Skip("the call of the function decides an attribute of the Gemm")
    if a.rank != 2 or weight.const is None or weight.rank != 2:
        return Skip("it is no product of a matrix with a constant one")
    if not weight.has_one_user:
        return Skip("others read the weight too")
    vectors = [value.const for value in (scale, shift, mean, variance)]
    s, t, m, v = (None if array is None else array.astype(np.float64) for array in vectors)
    if s is None or t is None or m is None or v is None:
        return Skip("a parameter of the batch norm is not a constant")
    if not (v + epsilon > 0).all():
        return Skip("var + epsilon is not positive")
    settings = product.attributes
    kernel = weight.const
    columns = kernel.shape[0 if settings.get("transB", 0) else 1]
    if any(array.shape != (columns,) for array in (s, t, m, v)):
        return Skip("the batch norm has another number of channels")
    offset = np.zeros(columns)
    if c is not None:
        if c.const is None or c.const.size not in (1, columns) or c.const.shape[-1:] == (1,):
            return Skip("what is added is not one constant a column")
        offset = offset + float(settings.get("beta", 1.0)) * c.const.astype(np.float64).ravel()
    factor = s / np.sqrt(v + epsilon)
    spread = factor[:, None] if settings.get("transB", 0) else factor[None, :]
    with np.errstate(over="ignore"):
        scaled = (kernel.astype(np.float64) * spread).astype(kernel.dtype)
        added = (factor * (offset - m) + t).astype(kernel.dtype)
    if not np.isfinite(scaled).all() or not np.isfinite(added).all():
        return Skip("the fused weights are not finite")
    kept = {name: value for name, value in settings.items() if name != "beta"}
    operands = (graph.constant(scaled, weight.name), graph.constant(added, shift.name))
    result: Value = graph.op.Gemm(a, *operands, **kept)
    return result
