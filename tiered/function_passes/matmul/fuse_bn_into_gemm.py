"""BatchNormalization(Gemm(a, weight, c))  =>  Gemm(a, weight', c'), also of a MatMul"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.normalization import batch_norm_of, batch_norm_pattern
from tiered.rewriter.idioms.scale import loses_digits

_product = (op.MatMul(var.a, var.weight) | op.Gemm(var.a, var.weight, opt.c, attrs=...)).bind(
    "product"
)


@rewrite(
    batch_norm_pattern(_product),
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
    shift: Value,
) -> Value | Skip:
    """Scale the columns of the weight and shift what is added to them.

    The channels of a product of more than two dims are not its columns, so only matrices.
    """
    norm = batch_norm_of(node)
    if isinstance(norm, Skip):
        return norm
    if a.rank != 2 or weight.const is None or weight.rank != 2:
        return Skip("the second factor is not a constant matrix")
    if not weight.has_one_user:
        return Skip("the weight has other consumers")
    settings = product.attributes
    kernel = weight.const
    columns = kernel.shape[0 if settings.get("transB", 0) else 1]
    if norm.factor.shape != (columns,):
        return Skip("the batch norm has another number of channels")
    offset = np.zeros(columns)
    if c is not None:
        if c.const is None or c.const.size not in (1, columns) or c.const.shape[-1:] == (1,):
            return Skip("the addend is not constant per column")
        offset = offset + float(settings.get("beta", 1.0)) * c.const.astype(np.float64).ravel()
    spread = norm.factor[:, None] if settings.get("transB", 0) else norm.factor[None, :]
    with np.errstate(over="ignore"):
        scaled = (kernel.astype(np.float64) * spread).astype(kernel.dtype)
        added = norm.of(offset).astype(kernel.dtype)
    if not np.isfinite(scaled).all() or not np.isfinite(added).all():
        return Skip("the fused weights are not finite")
    if loses_digits(kernel, scaled, lambda: kernel.astype(np.float64) * spread):
        return Skip("the fused weights lose precision by underflow")
    kept = {name: value for name, value in settings.items() if name != "beta"}
    operands = (graph.constant(scaled, weight.name), graph.constant(added, shift.name))
    result: Value = graph.op.Gemm(a, *operands, **kept)
    return result
