"""Cast(MatMulInteger(a, b)) * (s * r) + bias  =>  MatMulIntegerToFloat(a, b, s, r, bias)"""

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantization_parts import is_one
from tiered.rewriter.idioms.quantized_tensors import is_number_or_column, why_sums_nothing

_scaled = op.Mul(
    op.Cast(
        op.MatMulInteger(var.a, var.b, opt.a_zero, opt.b_zero), to=DataType.FLOAT, attrs="ignored"
    ),
    op.Mul(var.s, var.r),
)
_product = op("com.microsoft").MatMulIntegerToFloat(
    var.a, var.b, var.s, var.r, opt.a_zero, opt.b_zero
)


@rewrite(
    _scaled | op.Add(_product.bind("product"), var.bias),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::MatMulIntegerToFloat"],
    quantization="operators",
    numerics="reassociating",
)
def fuse_scale_into_matmul_integer(
    graph: Graph,
    product: Node | None,
    a: Value,
    b: Value,
    a_zero: Value | None,
    b_zero: Value | None,
    s: Value,
    r: Value,
    bias: Value | None,
) -> Value | Skip:
    """Multiply integers and scale by one operator, then fold a bias into it.

    The kernel multiplies the two scales first, as the model does: the result is the same.
    """
    if a.rank is None or b.rank is None or min(a.rank, b.rank) < 2:
        return Skip("a factor is not known to have matrices")
    if (empty := why_sums_nothing(a, b)) is not None:
        return empty
    columns = b.dim(-1)
    if product is None and not is_one(s):
        s, r = r, s
    if not is_one(s) or not (a_zero is None or is_one(a_zero)):
        return Skip("data has several scales or zero points")
    for what in (r, b_zero):
        if what is None or is_one(what):
            continue
        if b.rank > 2 or not is_number_or_column(what, columns):
            return Skip("a weight scale is not per column")
    if bias is not None and (columns is None or bias.shape != (columns,)):
        return Skip("the bias is not one number per column")
    return graph.op("com.microsoft").MatMulIntegerToFloat(a, b, s, r, a_zero, b_zero, bias)
