"""QuantizeLinear(Gemm(DequantizeLinear(a), DequantizeLinear(b), c))  =>  QGemm(a, b, c)"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import integer_bias, kernel_unit, why_may_overflow


@rewrite(
    op.QuantizeLinear(op.Gemm(var.a, var.b, opt.c, attrs=...).bind("gemm"), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::QGemm"],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_gemm(
    graph: Graph, node: Node, gemm: Node, a: Value, b: Value, c: Value | None
) -> Value | Skip:
    """Multiply and add integers, and round once."""
    if gemm.attr("alpha") != 1 or gemm.attr("beta") != 1:
        return Skip("the product or the addend is scaled")
    units = kernel_unit(node, a, b, axis=0 if gemm.attr("transB") else 1)
    if isinstance(units, Skip):
        return units
    data, kernel, result = units
    steps = integer_bias(graph, c, data, kernel, float(result.scales.item()))
    if isinstance(steps, Skip):
        return steps
    summed = slice(1, 2) if gemm.attr("transB") else slice(0, 1)
    overflow = why_may_overflow(data, kernel, summed, steps)
    if overflow is not None:
        return overflow
    settings = {name: gemm.attr(name) for name in ("transA", "transB")}
    product: Value = graph.op("com.microsoft").QGemm(
        *data.operands(graph),
        *kernel.operands(graph),
        steps,
        *result.parameters(graph),
        **settings,
    )
    return product
