"""Transpose(DequantizeLinear(q, scale, zero))  =>  DequantizeLinear(Transpose(q), scale, zero)"""

from collections.abc import Sequence
from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rest, rewrite, var
from tiered.idioms.quantization_parts import (
    MOVE_ATTRIBUTES,
    MOVES,
    MOVES_ALONE,
    is_blocked,
    is_one,
    moved_axis,
)

# Kernels move no integers of fewer bits.
_INTEGERS: Final = (DataType.INT16, DataType.INT8, DataType.UINT16, DataType.UINT8, DataType.INT32)
_unit = op.DequantizeLinear(var.q, var.scale, opt.zero, attrs=...).bind("unit")


@rewrite(
    MOVES_ALONE(_unit, attrs=...).bind("move")
    | MOVES(_unit, rest.others, attrs=...).bind("move"),
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
    if q.dtype not in _INTEGERS:
        return Skip("the integers have fewer than 8 bits")
    if is_blocked(unit):
        return Skip("a scale is for a block of indices")
    axis = None
    if not is_one(scale):
        axis = moved_axis(move, int(unit.attr("axis", 1)), q.rank)
        if axis is None:
            return Skip("the axis of the scales may not survive")
    moved: Value = graph.op.like(move, q, *(others or ()), **MOVE_ATTRIBUTES)
    return graph.op.like(unit, moved, scale, zero, axis=axis)
