"""Transpose(DequantizeLinear(q, scale, zero))  =>  DequantizeLinear(Transpose(q), scale, zero)"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, opt, rest, rewrite, var
from tiered.rewriter.idioms.quantization_parts import (
    DEQUANTIZE,
    MOVE_ATTRIBUTES,
    MOVES,
    MOVES_ALONE,
    axis_behind,
    why_not_moved,
)

_unit = DEQUANTIZE(var.q, var.scale, opt.zero, attrs=...).bind("unit")


@rewrite(
    MOVES_ALONE(_unit, attrs=...).bind("move") | MOVES(_unit, rest.others, attrs=...).bind("move"),
    opt_level=None,
    required=("infer_shapes",),
)
def sink_dequantize(
    graph: Graph,
    move: Node,
    unit: Node,
    q: Value,
    scale: Value,
    zero: Value | None,
    others: Sequence[Value | None] | None,
) -> Value | Skip:
    """Move integers instead of floats; a scale for each index follows its axis.

    Each element is dequantised as before.
    """
    if reason := why_not_moved(unit):
        return reason
    axis = axis_behind(move, unit, q.rank)
    if isinstance(axis, Skip):
        return axis
    moved: Value = graph.op.like(move, q, *(others or ()), **MOVE_ATTRIBUTES)
    return graph.op.like(unit, moved, scale, zero, axis=axis)
