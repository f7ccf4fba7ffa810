"""How a tensor was computed, where a rule of its consumer asks: clamps, choices, quantised numbers.

A form says the same as the terms of its tensor. A rule that does not know it reads the terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.certify.domains.terms import Array
    from tiered.certify.evaluation.values import CheckedTensor


@dataclass(frozen=True)
class Clamp:
    """`base` below `high` and above `low`: an element between them, or equal to one, is kept.

    Attributes:
        low: numbers; the least of the dtype (-Inf of floats) where there is no bound.
        high: numbers, at least `low`.
    """

    base: CheckedTensor
    low: Array
    high: Array


@dataclass(frozen=True)
class Extremum:
    """Max or Min of several tensors and numbers, whose order does not matter."""

    op: str
    parts: tuple[CheckedTensor, ...]
    bound: Array | None


@dataclass(frozen=True)
class ChoiceForm:
    """`one` where a condition holds, else `other`."""

    condition: CheckedTensor
    one: CheckedTensor
    other: CheckedTensor


@dataclass(frozen=True)
class Fixed:
    """The result of an operator that changes nothing if it is applied again."""

    ops: frozenset[str]


@dataclass(frozen=True)
class Negative:
    """The negative of integers of fewer than 64 bits: of the least one it is that one again."""

    base: CheckedTensor


@dataclass(frozen=True)
class SumsToOne:
    """Elements along the last axis that sum to 1: those of a Softmax."""


@dataclass(frozen=True)
class WithoutSign:
    """A tensor plus zero: `base`, but for the signs of its zeros."""

    base: CheckedTensor


@dataclass(frozen=True)
class Dequantized:
    """What DequantizeLinear made of integers, by numbers for scales and zero points."""

    integers: CheckedTensor
    scale: Array
    zero: Array
    axis: int

    def is_scaled_as(self, other: Dequantized) -> bool:
        """Return whether both have the same number for a scale, and for a zero point."""
        pairs = ((self.scale, other.scale), (self.zero, other.zero))
        is_same = all(one.size == 1 == two.size and (one == two).all() for one, two in pairs)
        return is_same and self.integers.dtype == other.integers.dtype
