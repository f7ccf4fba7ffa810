"""Operators that broadcast, and which of their operands decide the shape of the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tiered.graph.core.types import Dim, Shape
from tiered.graph.queries.op_traits import ARITHMETIC, BITWISE, COMPARISONS, LOGIC

BROADCASTS: Final = frozenset({*ARITHMETIC, *BITWISE, *COMPARISONS, *LOGIC, "Where"})
"""Operators that compute the same, bit for bit, from an operand and from its repetition.

Not in the table: Pow has another kernel for a scalar exponent, and for Max and Min a scalar operand
may change which of two zeros is the result.
"""


def has_size(shapes: Iterable[Shape | None], size: Dim, from_end: int) -> bool:
    """Return whether a shape surely has this size at an axis; the last axis is 1 from the end."""
    known = (shape for shape in shapes if shape is not None and len(shape) >= from_end)
    return size is not None and any(shape[-from_end] == size for shape in known)
