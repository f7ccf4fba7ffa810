"""Data movement by numpy: the same bits as by onnxruntime, which need not be loaded for it.

Exporters write most weights in another order than operators take them, so that many models have
nothing to compute but Transposes and Reshapes of constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.opset.aspect import Aspect
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Array = np.ndarray[Any, Any]
Operands = Sequence[Array | None]

Rule = Callable[["Node", Operands], Array]
"""Computes the output of a node; raises ValueError where numpy would compute something else."""

MOVES: Final[Aspect[Rule]] = Aspect("move")

move_rule = MOVES.rule
"""Registers a function that moves the elements of constants as operators do."""


def moved(wanted: Iterable[Value], nodes: Sequence[Node]) -> dict[Value, Array]:
    """Return the numbers of those values that are constants with their elements moved.

    Args:
        wanted: values that depend on constants alone.
        nodes: the nodes that compute them, producers first.
    """
    moves = set(filter(_is_move, nodes))
    results = [value for value in wanted if value.producer in moves]
    needed: set[Value | None] = set(results)
    order: list[Node] = []
    for node in reversed(nodes):
        if node in moves and node.output in needed:
            order.append(node)
            needed.update(node.inputs)
    known: dict[Value, Array] = {}
    for node in reversed(order):
        # What is wrong with an operator, onnxruntime says better.
        try:
            operands = [None if value is None else _read(value, known) for value in node.operands]
            rule = MOVES.of(node)
            assert rule is not None
            known[node.output] = rule(node, operands)
        except (IndexError, KeyError, ModelError, TypeError, ValueError):
            continue
    # Copies, because an array may be part of a mapped file.
    return {value: np.array(known[value], order="C") for value in results if value in known}


def _is_move(node: Node) -> bool:
    if MOVES.of(node) is None or node.has_references or node.output.dtype not in _PLAIN:
        return False
    return not node.is_op("Cast") or _is_exact(node)


def _is_exact(cast: Node) -> bool:
    """Return whether a Cast gives the same bits everywhere: what is not 0 is true, NaN too."""
    before, target = cast.given(0).dtype, cast.output.dtype
    return before in _WHOLE or (before in _PLAIN and target == DataType.BOOL)


def _read(value: Value, known: Mapping[Value, Array]) -> Array:
    """Return the numbers of an operand.

    Raises:
        KeyError: they are not known.
        ModelError: the bytes of a constant do not fit its type.
    """
    tensor = value.tensor
    if tensor is None or tensor.is_sparse:
        return known[value]
    return tensor.numpy()


# --- operators ------------------------------------------------------------------------------------


def _data(operands: Operands, index: int = 0) -> Array:
    array = operands[index]
    if array is None:
        raise ValueError("an operand is absent")
    return array


def _axes(operands: Operands) -> tuple[int, ...]:
    axes = tuple(_data(operands, 1).ravel().tolist())
    if not axes:
        raise ValueError("the axes are empty")
    return axes


@MOVES.rule("Transpose")
def _transpose(node: Node, operands: Operands) -> Array:
    perm = node.attr("perm", None)
    if perm and min(perm) < 0:
        raise ValueError("numpy would count the axis from the end")
    return np.transpose(_data(operands), perm)


@MOVES.rule("Identity")
def _identity(node: Node, operands: Operands) -> Array:
    return _data(operands)


@MOVES.rule("Reshape")
def _reshape(node: Node, operands: Operands) -> Array:
    x, target = _data(operands), _data(operands, 1).ravel().tolist()
    if target and min(target) < -1:
        raise ValueError("numpy would take it for -1")
    if not node.attr("allowzero", 0):
        target = [size or x.shape[axis] for axis, size in enumerate(target)]
    return x.reshape(target)


@MOVES.rule("Flatten")
def _flatten(node: Node, operands: Operands) -> Array:
    x, axis = _data(operands), node.attr("axis")
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError("the axis is out of range")
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@MOVES.rule("Squeeze")
def _squeeze(node: Node, operands: Operands) -> Array:
    has_axes = len(operands) > 1 and operands[1] is not None
    return np.squeeze(_data(operands), _axes(operands) if has_axes else None)


@MOVES.rule("Unsqueeze")
def _unsqueeze(node: Node, operands: Operands) -> Array:
    return np.expand_dims(_data(operands), _axes(operands))


@MOVES.rule("Expand")
def _expand(node: Node, operands: Operands) -> Array:
    x, target = _data(operands), tuple(_data(operands, 1).tolist())
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, target))


@MOVES.rule("Concat")
def _concat(node: Node, operands: Operands) -> Array:
    parts = [_data(operands, at) for at in range(len(operands))]
    return np.concatenate(parts, node.attr("axis"), casting="no")


@MOVES.rule("Where")
def _where(node: Node, operands: Operands) -> Array:
    condition, x, y = (_data(operands, at) for at in range(3))
    if condition.dtype != np.bool_ or x.dtype != y.dtype:
        raise ValueError("numpy would convert an operand")
    return np.where(condition, x, y)


@MOVES.rule("ConstantOfShape")
def _constant_of_shape(node: Node, operands: Operands) -> Array:
    number = node.attr("value", None)
    fill = np.zeros(1, np.float32) if number is None else number.numpy()
    return np.broadcast_to(fill.reshape(()), _data(operands).tolist())


@MOVES.rule("Cast")
def _cast(node: Node, operands: Operands) -> Array:
    assert node.output.dtype is not None
    return _data(operands).astype(DataType(node.output.dtype).numpy)


_WHOLE: Final = frozenset(
    {
        DataType.BOOL, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
        DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
    }
)  # fmt: skip
"""The dtypes from which a Cast is exact, or wraps around, in every implementation."""

_PLAIN: Final = _WHOLE | {DataType.DOUBLE, DataType.FLOAT}
"""The dtypes of results: those of numpy itself, without 16-bit floats, which a Cast rounds."""
