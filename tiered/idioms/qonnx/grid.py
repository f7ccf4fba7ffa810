"""Integers of few bits: which a Quant of QONNX rounds to, and as Q/DQ with a Clip between."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.idioms.qonnx.bodies import DEFAULTS, form_of, rounding_of
from tiered.intervals.integer_type import limits_of
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Node, Value

Floats = NDArray[np.float32]


class Grid(NamedTuple):
    """The integers of a number of bits; narrow ones lack the lowest, or unsigned the highest."""

    bits: int
    signed: bool
    narrow: bool

    @property
    def low(self) -> int:
        return limits_of(self.bits, signed=self.signed, narrow=self.narrow)[0]

    @property
    def high(self) -> int:
        return limits_of(self.bits, signed=self.signed, narrow=self.narrow)[1]

    @property
    def is_byte(self) -> bool:
        """Whether these are all integers of int8 or uint8."""
        return self.bits == 8 and not self.narrow

    @property
    def dtype(self) -> DataType:
        """The dtype of 8 bits that holds them."""
        return DataType.INT8 if self.signed else DataType.UINT8


def grid_between(low: int, high: int, *, signed: bool) -> Grid | None:
    """Return the integers with these limits; None if no number of bits has them."""
    for bits in range(1 + signed, 9):
        for narrow in (False, True):
            grid = Grid(bits, signed, narrow)
            if (grid.low, grid.high) == (low, high) and low < high:
                return grid
    return None


class Steps(NamedTuple):
    """Integers with a scale and a zero point; the axis that both are along, None for one scale."""

    grid: Grid
    scale: Floats
    zero: Floats
    axis: int | None

    @property
    def zeros(self) -> NDArray[np.integer]:
        """The zero point in the dtype of the integers."""
        return self.zero.astype(self.grid.dtype.numpy)

    def codes_of(self, numbers: Floats) -> NDArray[np.integer]:
        """Return the integers that a Quant rounds numbers to; none of them is NaN."""
        dims = (-1, *[1] * (numbers.ndim - 1 - self.axis)) if self.axis is not None else ()
        with np.errstate(over="ignore"):
            raw = numbers / self.scale.reshape(dims) + self.zero.reshape(dims)
        codes = np.rint(np.clip(raw, np.float32(self.grid.low), np.float32(self.grid.high)))
        return np.asarray(codes, self.grid.dtype.numpy)


def steps_of(node: Node) -> Steps | Skip:
    """Return the integers and the scale of a Quant that Q/DQ computes too, or why none does."""
    form = form_of(node)
    if isinstance(form, Skip):
        return form
    x, scale, zero, bits = node.inputs
    assert x is not None
    assert scale is not None
    assert zero is not None
    assert bits is not None
    if form.mode != "ROUND":
        return Skip("it rounds by {}", rounding_of(node))
    if bits.number is None or zero.const is None or scale.const is None:
        return Skip("a scale, zero point or width is not constant")
    defaults = DEFAULTS["Quant"]
    signed, narrow = (bool(node.attr(name, defaults[name])) for name in ("signed", "narrow"))
    grid = Grid(int(bits.number), signed, narrow)
    if grid.bits > 8:
        return Skip("the integers have more than 8 bits")
    if grid.low >= grid.high or grid.bits <= signed:
        return Skip("the integers have one bit")
    if reason := _why_no_zero_point(x, zero.const, grid):
        return reason
    if not ((scale.const > 0) & (scale.const < np.inf)).all():
        return Skip("a scale is not positive and finite")
    scales, zeros = scale.const, zero.const
    rank = max(scales.ndim, zeros.ndim)
    if zeros.any():
        shape = np.broadcast_shapes(scales.shape, zeros.shape)
        scales, zeros = np.broadcast_to(scales, shape), np.broadcast_to(zeros, shape)
    else:
        zeros = np.zeros_like(scales)
    found = _axis_of(x, scales, rank)
    if isinstance(found, Skip):
        return found
    axis = None if scales.size == 1 else found
    dims = () if axis is None else -1
    return Steps(grid, scales.reshape(dims), zeros.reshape(dims), axis)


def _why_no_zero_point(x: Value, zeros: Floats, grid: Grid) -> Skip | None:
    """Return why Q/DQ rounds otherwise, with a zero point; constants are rounded here."""
    if not zeros.any():
        return None
    if x.const is None:
        # Quant adds it before it rounds, and the sum rounds too.
        return Skip("the zero point is not zero")
    limits = np.iinfo(grid.dtype.numpy)
    if not ((zeros == np.rint(zeros)) & (zeros >= limits.min) & (zeros <= limits.max)).all():
        return Skip("the zero point is no integer of 8 bits")
    return Skip("a number is NaN") if np.isnan(x.const).any() else None


def _axis_of(x: Value, scale: Floats, rank: int) -> int | Skip:
    """Return the axis of x that a scale is along; 0 for one scale.

    Args:
        x: the numbers.
        scale: the scale.
        rank: the rank that the result has at least.
    """
    if rank and (x.rank is None or x.rank < rank):
        return Skip("the scale may have more dims than x")
    long = [axis for axis, dim in enumerate(scale.shape) if dim != 1]
    if not long:
        return 0
    assert x.rank is not None
    axis = long[0] + x.rank - scale.ndim
    if len(long) > 1:
        return Skip("the scale is along two axes")
    return axis if x.dim(axis) == scale.size else Skip("the size of the axis is not known")
