"""QuantizeLinear(Add(DequantizeLinear(a), DequantizeLinear(b)))  =>  QLinearAdd(a, b), Mul too"""

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import quantized_unit


@rewrite(
    op.QuantizeLinear((op.Add | op.Mul)(var.a, var.b).bind("binary"), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::QLinearAdd", "com.microsoft::QLinearMul"],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_binary(
    graph: Graph, node: Node, binary: Node, a: Value, b: Value
) -> Value | Skip:
    """Add or multiply the integers, and round once."""
    units = quantized_unit(node, a, b)
    if isinstance(units, Skip):
        return units
    first, second, result = units
    contrib = graph.op("com.microsoft")
    make = contrib.QLinearAdd if binary.op_type == "Add" else contrib.QLinearMul
    return make(*first.operands(graph), *second.operands(graph), *result.parameters(graph))
