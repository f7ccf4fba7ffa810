"""QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w), b))  =>  QLinearConv(x, w, b)"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import integer_bias, kernel_unit, why_may_overflow


@rewrite(
    op.QuantizeLinear(op.Conv(var.x, var.weight, opt.bias, attrs=...).bind("conv"), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_conv(
    graph: Graph, node: Node, conv: Node, x: Value, weight: Value, bias: Value | None
) -> Value | Skip:
    """Multiply and add integers, and round once.

    On x86 without VNNI, onnxruntime adds pairs of uint8 * int8 products in 16 bits, as it does
    after its own fusion: there, weights should use only 7 bits.
    """
    units = kernel_unit(node, x, weight, axis=0)
    if isinstance(units, Skip):
        return units
    data, kernel, result = units
    steps = integer_bias(graph, bias, data, kernel, float(result.scales.item()))
    if isinstance(steps, Skip):
        return steps
    overflow = why_may_overflow(data, kernel, slice(1, None), steps)
    if overflow is not None:
        return overflow
    integers: Value = graph.op.QLinearConv(
        *data.operands(graph),
        *kernel.operands(graph),
        *result.parameters(graph),
        steps,
        **conv.attributes,
    )
    return integers
