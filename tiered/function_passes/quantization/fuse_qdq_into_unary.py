"""QuantizeLinear(Sigmoid(DequantizeLinear(x)))  =>  QLinearSigmoid(x), LeakyRelu too"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import quantized_unit


@rewrite(
    op.QuantizeLinear((op.LeakyRelu | op.Sigmoid)(var.x, attrs=...).bind("unary"), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::QLinearLeakyRelu", "com.microsoft::QLinearSigmoid"],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_unary(graph: Graph, node: Node, unary: Node, x: Value) -> Value | Skip:
    """Compute the function by a table of the 256 integers."""
    units = quantized_unit(node, x)
    if isinstance(units, Skip):
        return units
    data, result = units
    contrib = graph.op("com.microsoft")
    operands = (*data.operands(graph), *result.parameters(graph))
    if unary.op_type == "Sigmoid":
        return contrib.QLinearSigmoid(*operands)
    return contrib.QLinearLeakyRelu(*operands, alpha=float(unary.attr("alpha")))
