"""QuantizeLinear(Move(DequantizeLinear(q, scale, zero)), scale, zero)  =>  Move(q)"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rest, rewrite, var
from tiered.rewriter.idioms.quantization_parts import MOVE_ATTRIBUTES, MOVES, MOVES_ALONE
from tiered.rewriter.idioms.quantized_tensors import dequantized, quantized_by


@rewrite(
    op.QuantizeLinear(
        (MOVES_ALONE | op.MaxPool)(var.x, attrs=...).bind("move")
        | MOVES(var.x, rest.others, attrs=...).bind("move"),
        ...,
        attrs=...,
    ),
    opt_level=3,
    quantization="operators",
)
def fuse_qdq_into_move(
    graph: Graph,
    node: Node,
    move: Node,
    x: Value,
    others: Sequence[Value | None] | None,
    *,
    pools: bool = False,
) -> Value | Skip:
    """Move the integers themselves, which a move does not change.

    For MaxPool, the largest number has the largest integer.

    Args:
        pools: also fuse MaxPool; onnxruntime's kernel for integers takes 40 times as long as the
            one for floats.
    """
    if move.op_type == "MaxPool" and not pools:
        return Skip("the kernel for floats is faster")
    before, after = dequantized(x), quantized_by(node)
    for unit in (before, after):
        if isinstance(unit, Skip):
            return unit
        if unit.axis is not None:
            return Skip("the scale is per index of an axis")
    assert not isinstance(before, Skip)
    assert not isinstance(after, Skip)
    if not before.has_parameters_of(after):
        return Skip("scale or zero point changes")
    moved: Value = graph.op.like(move, before.q, *(others or ()), **MOVE_ATTRIBUTES)
    return moved
