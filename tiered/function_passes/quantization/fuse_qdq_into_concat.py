"""QuantizeLinear(Concat(DequantizeLinear(a), DequantizeLinear(b)))  =>  QLinearConcat(a, b)"""

from collections.abc import Sequence

from tiered import QUANTIZED, Graph, Node, Skip, Value, op, rest, rewrite, var
from tiered.rewriter.idioms.quantized_tensors import quantized_unit


@rewrite(
    op.QuantizeLinear(op.Concat(rest.parts, axis=var.axis), ..., attrs=...),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::QLinearConcat"],
    quantization="operators",
    numerics=QUANTIZED,
)
def fuse_qdq_into_concat(
    graph: Graph, node: Node, parts: Sequence[Value], axis: int
) -> Value | Skip:
    """Concatenate the integers; those with another scale or zero point are requantised."""
    units = quantized_unit(node, *parts)
    if isinstance(units, Skip):
        return units
    *sources, result = units
    if all(source.has_parameters_of(result) for source in sources):
        return graph.op.Concat(*(source.q for source in sources), axis=axis)
    operands = [operand for source in sources for operand in source.operands(graph)]
    return graph.op("com.microsoft").QLinearConcat(*result.parameters(graph), *operands, axis=axis)
