"""The registry of range rules, and what a rule is called with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tiered.graph.core.dtypes import DataType, float_info
from tiered.graph.core.node import Node
from tiered.graph.core.types import Dim
from tiered.graph.core.value import Value
from tiered.graph.intervals.interval import ANY, Interval, total, widened
from tiered.graph.opset.aspect import Aspect

_EVERY: Final = slice(None)


class Counts(NamedTuple):
    """The bounds of a number of elements."""

    least: int
    most: int


class RangeCall(NamedTuple):
    """A node, and the intervals of its operands.

    Attributes:
        node: the node.
        operands: the interval of each operand; None for an absent one.
        dims: the bounds of a dim whose size is unknown.
    """

    node: Node
    operands: Sequence[Interval | None]
    dims: Counts

    @property
    def x(self) -> Interval:
        """The interval of the first operand."""
        return self.operand(0)

    def operand(self, place: int) -> Interval:
        """Return the interval of an operand that is there."""
        found = self.operands[place] if self.has(place) else None
        return ANY if found is None else found

    def has(self, place: int) -> bool:
        """Return whether there is an operand."""
        return place < len(self.operands) and self.operands[place] is not None

    @property
    def dtype(self) -> int | None:
        """The dtype of the first output."""
        first = self.node.outputs[0]
        return None if first is None else first.dtype

    @property
    def eps(self) -> float:
        """The distance from 1 to the next number of the dtype; 0 for integers."""
        dtype = self.dtype
        if dtype is None or not DataType(dtype).is_float:
            return 0.0
        return float(float_info(DataType(dtype).numpy).eps)

    @property
    def limit(self) -> float:
        """The largest number of the dtype; infinite for integers, which wrap."""
        dtype = self.dtype
        if dtype is None or not DataType(dtype).is_float:
            return math.inf
        return float(float_info(DataType(dtype).numpy).max)

    def total(self, terms: Interval, count: Counts) -> Interval:
        """Return the sums of `count` terms, in any order."""
        found = total(terms, count.least, count.most, self.eps)
        return found.with_nan(found.low < -self.limit and found.high > self.limit)

    def roughly(self, interval: Interval) -> Interval:
        """Return an interval with a margin for kernels that approximate a function."""
        return widened(interval, 64 * self.eps, 16 * self.eps)

    def size(self, dim: Dim) -> Counts:
        """Return the bounds of a dim."""
        return Counts(dim, dim) if isinstance(dim, int) else self.dims

    def extent(self, value: Value, axes: Sequence[int] | slice = _EVERY) -> Counts:
        """Return the bounds of the number of elements along some axes."""
        shape = value.shape
        if shape is None:
            return Counts(min(self.dims.least, 1), self.dims.most**4)
        dims = shape[axes] if isinstance(axes, slice) else [value.dim(axis) for axis in axes]
        sizes = [self.size(dim) for dim in dims]
        return Counts(math.prod(s.least for s in sizes), math.prod(s.most for s in sizes))


RangeRule = Callable[[RangeCall], "Interval | Sequence[Interval | None]"]
"""Returns the interval of the first output, or those of all; exact numbers, not rounded yet."""

RANGES: Final[Aspect[RangeRule]] = Aspect("range")

range_rule = RANGES.rule
"""Registers a function as the range rule of operators."""
