"""QuantizeLinear(Transpose(x), scale, zero)  =>  Transpose(QuantizeLinear(x, scale, zero))"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, opt, rest, rewrite, var
from tiered.rewriter.idioms.quantization_parts import (
    MOVE_ATTRIBUTES,
    MOVES,
    MOVES_ALONE,
    QUANTIZE,
    axis_behind,
    why_not_moved,
)


@rewrite(
    QUANTIZE(
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
    if reason := why_not_moved(node):
        return reason
    axis = axis_behind(move, node, x.rank, back=True)
    if isinstance(axis, Skip):
        return axis
    q = graph.op.like(node, x, scale, zero, axis=axis)
    moved: Value = graph.op.like(move, q, *(others or ()), **MOVE_ATTRIBUTES)
    return moved
