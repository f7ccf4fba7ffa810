"""Integers of few bits: which a Quant of QONNX rounds to, and as Q/DQ with a Clip between."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.graph.intervals.integer_type import limits_of
from tiered.rewriter.idioms.qonnx_bodies import DEFAULTS, form_of, rounding_of
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
    def is_whole(self) -> bool:
        """Whether these are all integers of the dtype."""
        return not self.narrow and self.bits == DataType(self.dtype).bits

    @property
    def dtype(self) -> DataType:
        """The dtype of 8, 16 or 32 bits that holds them."""
        width = next(width for width in (8, 16, 32) if self.bits <= width)
        return DataType[f"{'' if self.signed else 'U'}INT{width}"]


def grid_of(dtype: int) -> Grid:
    """Return all integers of a dtype."""
    found = DataType(dtype)
    return Grid(found.bits, found.name.startswith("INT"), narrow=False)


def grid_between(low: int, high: int, *, signed: bool) -> Grid | None:
    """Return the integers with these limits; None if no number of bits has them."""
    for bits in range(1 + signed, 17):
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

    def codes_of(self, numbers: Floats) -> NDArray[np.integer] | None:
        """Return the integers that a Quant rounds numbers to; None if their dtype has not all."""
        dims = (-1, *[1] * (numbers.ndim - 1 - self.axis)) if self.axis is not None else ()
        with np.errstate(over="ignore", invalid="ignore"):
            raw = numbers / self.scale.reshape(dims) + self.zero.reshape(dims)
        limits = np.float32(self.grid.low), np.float32(self.grid.high)
        codes = np.rint(np.clip(raw, *limits)).astype(np.float64)
        is_inside = (codes >= self.grid.low) & (codes <= self.grid.high)
        return codes.astype(self.grid.dtype.numpy) if is_inside.all() else None


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
    if reason := _why_no_width(x, zero.const, grid):
        return reason
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


def _why_no_width(x: Value, zeros: Floats, grid: Grid) -> Skip | None:
    """Return why Q/DQ have no such integers: more than 16 bits are for constants, as of a bias."""
    if grid.bits <= 8 or (grid.bits == 16 and grid.is_whole):
        return None
    if grid.bits != 32 or x.const is None or zeros.any() or not (grid.signed and grid.is_whole):
        return Skip("the integers have more than 8 bits")
    return None


def _why_no_zero_point(x: Value, zeros: Floats, grid: Grid) -> Skip | None:
    """Return why Q/DQ rounds otherwise, with a zero point; constants are rounded here."""
    if not zeros.any():
        return None
    if x.const is None:
        # Quant adds it before it rounds, and the sum rounds too.
        return Skip("the zero point is not zero")
    limits = np.iinfo(grid.dtype.numpy)
    if not ((zeros == np.rint(zeros)) & (zeros >= limits.min) & (zeros <= limits.max)).all():
        return Skip("the zero point is no integer of the dtype")
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
