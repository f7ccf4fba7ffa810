"""Split(DequantizeLinear(q))  =>  DequantizeLinear of each part of Split(q)"""

from tiered import Graph, Node, PassContext, Skip, function_pass
from tiered.rewriter.idioms.quantization_parts import is_along, why_not_moved


@function_pass(
    opt_level=None,
    required=("infer_shapes",),
    matches=("Split",),
    touches=("DequantizeLinear", "com.microsoft::DequantizeLinear"),
)
def sink_dequantize_past_split(graph: Graph, ctx: PassContext) -> None:
    """Split integers instead of floats, and dequantise each part as before."""
    for split in graph.topological_order():
        unit = split.producer(0) if split.is_op("Split") else None
        if unit is None or unit.op_type != "DequantizeLinear":
            continue
        if reason := _why_not(split, unit):
            ctx.skip(split, reason)
            continue
        with graph.rewrite("Split(DequantizeLinear(q)) => DequantizeLinear(Split(q))", split):
            q, *parameters = unit.inputs
            count = len(split.outputs)
            parts = graph.op.like(split, q, *split.operands[1:], outputs=count, split=None)
            graph.replace(split, [graph.op.like(unit, part, *parameters) for part in parts])


def _why_not(split: Node, unit: Node) -> Skip | None:
    if unit.domain not in ("", "com.microsoft") or split.parameter_reason or unit.parameter_reason:
        return Skip("an attribute is a function parameter, or the operator not known")
    if len(split.outputs) == 1:
        return Skip("Split has one part")
    if not unit.output.is_only_read_by(split):
        return Skip("the dequantised operand has other consumers")
    if reason := why_not_moved(unit):
        return reason
    if is_along(unit, int(split.attr("axis")), unit.given(0).rank):
        return Skip("the scales vary along the axis of Split")
    return None
