"""Concat(DequantizeLinear(a), DequantizeLinear(b))  =>  DequantizeLinear(Concat(a, b))"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rest, rewrite
from tiered.rewriter.idioms.quantization_parts import is_along, settings_of, why_not_moved


@rewrite(
    op.Concat(rest.operands, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
)
def sink_dequantize_past_concat(
    graph: Graph, node: Node, operands: Sequence[Value | None]
) -> Value | Skip:
    """Concatenate integers of equal scales and zero points, and dequantise them once."""
    units = [_unit_of(operand) for operand in operands]
    found = [unit for unit in units if unit is not None]
    if len(found) < len(units):
        return Skip("an operand has no DequantizeLinear")
    first = found[0]
    for unit in found:
        if reason := why_not_moved(unit):
            return reason
        if unit.parameter_reason:
            return Skip("{}", unit.parameter_reason)
        if not unit.output.is_only_read_by(node):
            return Skip("a dequantised operand has other consumers")
    if is_along(first, int(node.attr("axis")), first.given(0).rank):
        return Skip("the scales vary along the axis of Concat")
    if any(settings_of(unit) != settings_of(first) for unit in found):
        return Skip("operands have different scales or zero points")
    joined = graph.op.like(node, *(unit.input(0) for unit in found))
    return graph.op.like(first, joined, *first.inputs[1:])


def _unit_of(value: Value | None) -> Node | None:
    """Return the DequantizeLinear that makes a value."""
    node = None if value is None else value.producer
    if node is None or node.op_type != "DequantizeLinear":
        return None
    return node if node.domain in ("", "com.microsoft") else None
