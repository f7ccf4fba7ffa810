"""QuantizeLinear and DequantizeLinear in elementary operators: their parameters as operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.rewriter.language import op

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value


MOVES_ALONE: Final = (
    op.DepthToSpace | op.Flatten | op.Identity | op.SpaceToDepth | op.Transpose
)
"""Operators that move the elements of their only operand."""

MOVES: Final = op.Expand | op.Gather | op.Reshape | op.Slice | op.Squeeze | op.Tile | op.Unsqueeze
"""Operators that move, repeat or select elements of their first operand, by other operands."""

MOVE_ATTRIBUTES: Final[dict[str, Any]] = dict.fromkeys(
    ("axes", "ends", "repeats", "shape", "starts", "steps", "tiles")
)
"""Attributes of old opsets to omit: in the newest form of each operator they are operands."""


def is_one(value: Value) -> bool:
    """Return whether a scale is known to be one number."""
    return value.shape in ((), (1,))


def moved_axis(move: Node, axis: int, rank: int | None) -> int | None:
    """Return where an operator moves an axis to; None if that is not known."""
    if rank is None or move.op_type not in ("Identity", "Transpose"):
        return None
    if move.op_type == "Identity":
        return axis
    perm = move.perm
    return None if perm is None else perm.index(axis % rank)


def is_blocked(node: Node) -> bool:
    """Return whether each block along the axis has a scale of its own."""
    return bool(node.attr("block_size", 0))


def along_axis(graph: Graph, node: Node, x: Value, parameter: Value) -> Value:
    """Return a scale or a zero point so that it broadcasts to x.

    Args:
        graph: the graph of the node.
        node: a QuantizeLinear or a DequantizeLinear.
        x: its first operand, of known rank.
        parameter: one number, or one for each index of the axis; its rank is known.
    """
    assert x.rank is not None
    if parameter.rank == 0 or (parameter.shape == (1,) and x.rank) or x.rank == 1:
        return parameter
    if x.rank == 0:
        return graph.op.Reshape(parameter, np.zeros(0, np.int64))
    axis = node.attr("axis", 1) % x.rank
    if axis == x.rank - 1:
        return parameter
    dims = np.array([-1, *[1] * (x.rank - 1 - axis)], np.int64)
    return graph.op.Reshape(parameter, dims)
