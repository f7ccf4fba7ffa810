"""QuantizeLinear and DequantizeLinear in elementary operators: their parameters as operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.rewriter.language import op
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value


QUANTIZE: Final = op.QuantizeLinear | op("com.microsoft").QuantizeLinear
"""The operator of ONNX, and that of onnxruntime: with integers of 16 bits before opset 21."""

DEQUANTIZE: Final = op.DequantizeLinear | op("com.microsoft").DequantizeLinear
"""The inverse operators."""

_MOVABLE: Final = frozenset(
    {DataType.INT16, DataType.INT32, DataType.INT8, DataType.UINT16, DataType.UINT8}
)
"""The dtypes of integers that kernels move; none of them moves integers of fewer bits."""

MOVES_ALONE: Final = op.DepthToSpace | op.Flatten | op.Identity | op.SpaceToDepth | op.Transpose
"""Operators that move the elements of their only operand."""

MOVES: Final = op.Expand | op.Gather | op.Reshape | op.Slice | op.Squeeze | op.Tile | op.Unsqueeze
"""Operators that move, repeat or select elements of their first operand, by other operands."""

MOVE_ATTRIBUTES: Final[dict[str, Any]] = dict.fromkeys(
    ("axes", "ends", "repeats", "shape", "starts", "steps", "tiles")
)
"""Attributes of old opsets to omit: in the newest form of each operator they are operands."""


def why_not_moved(unit: Node) -> Skip | None:
    """Return why the integers of a QuantizeLinear or DequantizeLinear are not moved for floats."""
    q = unit.output if unit.op_type == "QuantizeLinear" else unit.given(0)
    if q.dtype not in _MOVABLE:
        return Skip("the integers have fewer than 8 bits")
    if is_blocked(unit):
        return Skip("a scale is for a block of indices")
    return None


def axis_behind(
    move: Node, unit: Node, rank: int | None, *, back: bool = False
) -> int | Skip | None:
    """Return the axis of the scales of a unit on the other side of an operator that moves elements.

    Args:
        move: the operator.
        unit: the QuantizeLinear or DequantizeLinear.
        rank: the rank of what the operator moves.
        back: whether the unit is after the operator and moves before it.

    Returns:
        None for one scale.
    """
    scale = unit.given(1)
    if is_one(scale):
        return None
    axis = int(unit.attr("axis", 1))
    found = _axis_before(move, axis, rank) if back else moved_axis(move, axis, rank)
    return Skip("the axis of the scales may not survive") if found is None else found


def _axis_before(move: Node, axis: int, rank: int | None) -> int | None:
    """Return the axis that an operator moves to another one; None if that is not known."""
    if rank is None:
        return None
    moved = ((each, moved_axis(move, each, rank)) for each in range(rank))
    return next((each for each, after in moved if after == axis % rank), None)


def settings_of(unit: Node) -> tuple[object, ...]:
    """Return what the results of a unit depend on beside its data; constants by their numbers."""
    parameters: list[object] = []
    for value in unit.inputs[1:3]:
        array = None if value is None else value.const
        parameters.append(value if array is None else (value and value.dtype, _bytes_of(array)))
    q = unit.output if unit.op_type == "QuantizeLinear" else unit.given(0)
    return unit.domain, q.dtype, sorted(unit.attributes.items()), parameters


def _bytes_of(array: NDArray[Any]) -> tuple[object, ...]:
    return array.shape, array.tobytes()


def is_along(unit: Node, axis: int, rank: int | None) -> bool:
    """Return whether the scales of a unit may vary along an axis of its data."""
    scale = unit.given(1)
    if is_one(scale):
        return False
    return rank is None or int(unit.attr("axis", 1)) % rank == axis % rank


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
