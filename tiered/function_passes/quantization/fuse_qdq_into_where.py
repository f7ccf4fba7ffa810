"""QuantizeLinear(Where(c, DequantizeLinear(a), DequantizeLinear(b)))  =>  QLinearWhere(c, a, b)"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import quantized_unit


@rewrite(
    op.QuantizeLinear(op.Where(var.condition, var.a, var.b), ..., attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    makes=["com.microsoft::QLinearWhere"],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_where(
    graph: Graph, node: Node, condition: Value, a: Value, b: Value
) -> Value | Skip:
    """Select integers; those with another scale or zero point are requantised.

    Opt-in: onnxruntime's kernel takes at least 5 times as long as the one for floats.
    """
    units = quantized_unit(node, a, b)
    if isinstance(units, Skip):
        return units
    first, second, result = units
    return graph.op("com.microsoft").QLinearWhere(
        condition,
        *first.operands(graph),
        *second.operands(graph),
        *result.parameters(graph),
    )
