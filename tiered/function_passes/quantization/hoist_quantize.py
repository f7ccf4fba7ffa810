"""QuantizeLinear(Transpose(x), scale, zero)  =>  Transpose(QuantizeLinear(x, scale, zero))"""

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
_INTEGERS: Final = (DataType.INT16, DataType.INT8, DataType.UINT16, DataType.UINT8)


@rewrite(
    op.QuantizeLinear(
        MOVES_ALONE(var.x, attrs=...).bind("move")
        | MOVES(var.x, rest.others, attrs=...).bind("move"),
        var.scale,
        opt.zero,
        attrs=...,
    ),
    opt_level=None,
    required=("infer_shapes",),
)
def hoist_quantize(
    graph: Graph,
    node: Node,
    move: Node,
    x: Value,
    scale: Value,
    zero: Value | None,
    others: Sequence[Value | None] | None,
) -> Value | Skip:
    """Move integers instead of floats; a scale for each index follows its axis back.

    Each element is quantised as before, by the same scale.
    """
    if node.output.dtype not in _INTEGERS:
        return Skip("the integers have fewer than 8 bits")
    if is_blocked(node):
        return Skip("a scale is for a block of indices")
    axis = None
    if not is_one(scale):
        axis = _axis_before(move, int(node.attr("axis", 1)), x.rank)
        if axis is None:
            return Skip("the axis of the scales may not survive")
    q = graph.op.like(node, x, scale, zero, axis=axis)
    moved: Value = graph.op.like(move, q, *(others or ()), **MOVE_ATTRIBUTES)
    return moved


def _axis_before(move: Node, axis: int, rank: int | None) -> int | None:
    """Return the axis that an operator moves to another one; None if that is not known."""
    if rank is None:
        return None
    moved = ((each, moved_axis(move, each, rank)) for each in range(rank))
    return next((each for each, after in moved if after == axis % rank), None)
