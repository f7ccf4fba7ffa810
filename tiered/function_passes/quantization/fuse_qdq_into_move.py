"""QuantizeLinear(Move(DequantizeLinear(q, scale, zero)), scale, zero)  =>  Move(q)"""

from collections.abc import Sequence
from typing import Any

from tiered import Graph, Node, Skip, Value, op, rest, rewrite, var
from tiered.idioms.quantization import dequantized, quantized_by

_alone = op.DepthToSpace | op.Flatten | op.Identity | op.MaxPool | op.SpaceToDepth | op.Transpose
_with_others = (
    op.Expand | op.Gather | op.Reshape | op.Slice | op.Squeeze | op.Tile | op.Unsqueeze
)


@rewrite(
    op.QuantizeLinear(
        _alone(var.x, attrs=...).bind("move")
        | _with_others(var.x, rest.others, attrs=...).bind("move"),
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
    moved: Value = graph.op.like(move, before.q, *(others or ()), **_OPERANDS)
    return moved


_OPERANDS: dict[str, Any] = dict.fromkeys(
    ("axes", "ends", "repeats", "shape", "starts", "steps", "tiles")
)
"""Attributes of old opsets to omit: in the newest form of each operator they are operands."""
