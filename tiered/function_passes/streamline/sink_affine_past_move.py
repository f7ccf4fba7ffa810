"""Transpose(x * c)  =>  Transpose(x) * c, also of Div, Add and Sub, and other moves"""

from collections.abc import Sequence
from typing import Final

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, rest, rewrite
from tiered.rewriter.idioms.elementwise.affine import STEP, placed, varying_axis
from tiered.rewriter.idioms.quantization_parts import MOVE_ATTRIBUTES, moved_axis

_ALONE: Final = op.Flatten | op.Transpose
_MOVES: Final = op.Reshape | op.Slice | op.Squeeze | op.Unsqueeze


@rewrite(
    _ALONE(STEP, attrs=...).bind("move") | _MOVES(STEP, rest.others, attrs=...).bind("move"),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def sink_affine_past_move(
    graph: Graph,
    move: Node,
    step: Node,
    x: Value,
    c: Value,
    others: Sequence[Value | None] | None,
) -> Value | Skip:
    """Compute where the elements have moved to; a constant along an axis follows it."""
    assert c.const is not None
    axis = varying_axis(x, c.const)
    if isinstance(axis, Skip):
        return axis
    if axis is not None:
        axis = _axis_after(move, axis, x.rank)
        if axis is None:
            return Skip("the axis of the constant may not survive")
    moved = graph.op.like(move, x, *(others or ()), **MOVE_ATTRIBUTES)
    return graph.op.like(step, moved, placed(graph, c, axis, x.rank))


def _axis_after(move: Node, axis: int, rank: int | None) -> int | None:
    """Return where an operator moves an axis to, whole; None if it may not."""
    if move.op_type != "Slice":
        return moved_axis(move, axis, rank)
    axes = move.operand("axes")
    if axes is None or axes.const is None or rank is None:
        return None
    cut = non_negative_axes(axes.const.tolist(), rank)
    return None if cut is None or axis in cut else axis
