"""Affine steps: a tensor times, over, plus or minus a constant, which may move past operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tiered.rewriter.language import const, op, var
from tiered.rewriter.skip import Skip
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

STEP: Final = (op.Add | op.Div | op.Mul | op.Sub)(var.x, const(name="c")).bind("step")
"""Any affine step."""

SCALE: Final = (op.Div | op.Mul)(var.x, const(name="c")).bind("step")
"""A tensor times or over a constant."""

OFFSET: Final = (op.Add | op.Sub)(var.x, const(name="c")).bind("step")
"""A tensor plus or minus a constant."""


def varying_axis(x: Value, array: NDArray[Any]) -> int | Skip | None:
    """Return the axis of x that a constant operand varies along; None for one number.

    Args:
        x: the other operand of an elementwise operator, whose result has the shape of x.
        array: the constant.
    """
    if array.ndim and (x.rank is None or array.ndim > x.rank):
        return Skip("the constant adds dims, or the rank is not known")
    if array.size == 1:
        return None
    assert x.rank is not None
    wide = [x.rank - array.ndim + at for at, dim in enumerate(array.shape) if dim != 1]
    if len(wide) != 1 or x.dim(wide[0]) != array.size:
        return Skip("the constant does not vary along one axis alone")
    return wide[0]


def placed(graph: Graph, c: Value, axis: int | None, rank: int | None) -> Value:
    """Return a constant that varies along one axis, for a tensor that has it at another place.

    Args:
        graph: the graph of the tensor.
        c: the constant.
        axis: the axis of the tensor; None for a constant that is one number.
        rank: the rank of the tensor; it may be None for one number.
    """
    assert c.const is not None
    shape: tuple[int, ...] = ()
    if axis is not None:
        assert rank is not None
        shape = (c.const.size, *[1] * (rank - 1 - axis))
    return c if c.const.shape == shape else graph.constant(c.const.reshape(shape), c.name)


def why_no_factor(c: Value) -> Skip | None:
    """Return why a float tensor times a constant does not keep Inf, NaN and what is not 0."""
    if not c.is_float:
        return Skip("the constant is not a float")
    assert c.const is not None
    numbers = c.const.astype(np.float64)
    if not np.isfinite(numbers).all() or not numbers.all():
        return Skip("a factor is 0 or not finite")
    return None


class AffineStep(Record):
    """An affine step: its operand, its constant and its node."""

    x: Value
    c: Value
    node: Node

    @property
    def axis(self) -> int | Skip | None:
        """The axis of the operand that the constant varies along; None for one number."""
        assert self.c.const is not None
        return varying_axis(self.x, self.c.const)

    def is_like(self, other: AffineStep) -> bool:
        """Return whether operator and constant are the same, bit for bit."""
        first, second = self.c.const, other.c.const
        assert first is not None
        assert second is not None
        kinds = [(step.node.op_type, step.c.dtype, step.c.shape) for step in (self, other)]
        return kinds[0] == kinds[1] and first.tobytes() == second.tobytes()


def step_of(value: Value | None) -> AffineStep | None:
    """Return the affine step that makes a value."""
    node = None if value is None else value.producer
    if node is None or node.domain or node.op_type not in ("Add", "Div", "Mul", "Sub"):
        return None
    x, c = node.given(0), node.given(1)
    if node.op_type in ("Add", "Mul") and x.is_constant:
        x, c = c, x
    if x.is_constant or c.const is None:
        return None
    return AffineStep(x, c, node)
