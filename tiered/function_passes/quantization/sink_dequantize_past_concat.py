"""Concat(DequantizeLinear(a), DequantizeLinear(b))  =>  DequantizeLinear(Concat(a, b))"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rest, rewrite
from tiered.idioms.quantization import Quantized, dequantized


@rewrite(
    op.Concat(rest.operands, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
)
def sink_dequantize_past_concat(
    graph: Graph, node: Node, operands: Sequence[Value | None]
) -> Value | Skip:
    """Concatenate integers of one scale and zero point, and dequantise them once."""
    units: list[Quantized] = []
    for operand in operands:
        unit = dequantized(operand)
        if isinstance(unit, Skip):
            return unit
        if unit.axis is not None:
            return Skip("a scale for each index of an axis")
        if operand is not None and not operand.is_only_read_by(node):
            return Skip("a dequantised operand has other consumers")
        units.append(unit)
    first = units[0]
    if not all(unit.has_parameters_of(first) for unit in units):
        return Skip("operands have different scales or zero points")
    q = graph.op.like(node, *(unit.q for unit in units))
    made: Value = graph.op.DequantizeLinear(q, *first.parameters(graph))
    return made
