"""Cast(MatMulInteger(DynamicQuantizeLinear(x), w)) * scales  =>  DynamicQuantizeMatMul(x, w)"""

from tiered import DataType, Graph, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import is_number_or_column, why_sums_nothing

_data = op.DynamicQuantizeLinear(var.x)
_scaled = op.Mul(
    op.Cast(
        op.MatMulInteger(_data.shared(), var.weight, _data.shared().out(2), opt.weight_zero),
        to=DataType.FLOAT,
        attrs="ignored",
    ),
    op.Mul(_data.shared().out(1), var.weight_scale),
)
_biased = op.Add(
    op("com.microsoft").DynamicQuantizeMatMul(var.x, var.weight, var.weight_scale, opt.weight_zero),
    var.bias,
)


@rewrite(
    _scaled | _biased,
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::DynamicQuantizeMatMul"],
    quantization="operators",
    numerics="reassociating",
)
def fuse_dynamic_quantize_matmul(
    graph: Graph,
    x: Value,
    weight: Value,
    weight_zero: Value | None,
    weight_scale: Value,
    bias: Value | None,
) -> Value | Skip:
    """Quantise, multiply integers and scale by one operator, then fold a bias into it."""
    if weight.rank != 2 or x.rank is None or x.rank < 2:
        return Skip("operands are not data times a matrix")
    if (empty := why_sums_nothing(x, weight)) is not None:
        return empty
    columns = weight.dim(1)
    for what in (weight_scale, weight_zero):
        if what is not None and not is_number_or_column(what, columns):
            return Skip("scale or zero point is not per column")
    if bias is not None and (columns is None or bias.shape != (columns,)):
        return Skip("the bias is not one number per column")
    return graph.op("com.microsoft").DynamicQuantizeMatMul(
        x, weight, weight_scale, weight_zero, bias
    )
