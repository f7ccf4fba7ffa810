"""MatMul(DequantizeLinear(a), DequantizeLinear(b))  =>  MatMulIntegerToFloat(a, b)"""

from tiered import Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import dequantized, weight_unit, why_may_overflow


@rewrite(
    op.MatMul(var.a, var.b),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::MatMulIntegerToFloat"],
    quantization="operators",
    numerics="reassociating",
)
def fuse_dequantize_into_matmul(graph: Graph, a: Value, b: Value) -> Value | Skip:
    """Multiply and add integers, and scale the result."""
    data = dequantized(a)
    if isinstance(data, Skip):
        return data
    if data.axis is not None:
        return Skip("the scale of data is per index")
    if b.rank is None or b.rank < 2 or a.rank is None or a.rank < 2:
        return Skip("a factor is not known to have matrices")
    kernel = weight_unit(data, b, axis=b.rank - 1)
    if isinstance(kernel, Skip):
        return kernel
    if kernel.axis is not None and b.rank != 2:
        return Skip("per-column scales need a single matrix")
    overflow = why_may_overflow(data, kernel, slice(-2, -1))
    if overflow is not None:
        return overflow
    (x, x_scale, x_zero), (w, w_scale, w_zero) = data.operands(graph), kernel.operands(graph)
    return graph.op("com.microsoft").MatMulIntegerToFloat(x, w, x_scale, w_scale, x_zero, w_zero)
