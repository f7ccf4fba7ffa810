"""QuantizeLinear(MatMul(DequantizeLinear(a), DequantizeLinear(b)))  =>  QLinearMatMul(a, b)"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import kernel_unit, why_may_overflow


@rewrite(
    op.QuantizeLinear(op.MatMul(var.a, var.b), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_matmul(graph: Graph, node: Node, a: Value, b: Value) -> Value | Skip:
    """Multiply and add integers, and round once."""
    if b.rank is None or b.rank < 2:
        return Skip("the second factor may not have matrices")
    units = kernel_unit(node, a, b, axis=b.rank - 1)
    if isinstance(units, Skip):
        return units
    data, kernel, result = units
    if kernel.axis is not None and b.rank != 2:
        return Skip("per-column scales need a single matrix")
    overflow = why_may_overflow(data, kernel, slice(-2, -1))
    if overflow is not None:
        return overflow
    return graph.op.QLinearMatMul(
        *data.operands(graph), *kernel.operands(graph), *result.parameters(graph)
    )
