"""Quotients that may become 0, or too small for all of their digits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tiered.graph.core.dtypes import DataType, float_info
from tiered.graph.intervals.range_analysis import LARGEST_DIM, ranges

if TYPE_CHECKING:
    from tiered.graph import Value


def softmax_may_underflow(x: Value, axis: int) -> bool:
    """Return whether an element of Softmax(x) may be below the least normal number of its dtype.

    Args:
        x: the operand, of floats.
        axis: the axis of the sum, from 0 or from the end.
    """
    model = x.graph.model if x.graph is not None else None
    if model is None or x.dtype is None:
        return True
    found = model.analysis(ranges)[x]
    if found.may_be_inf:
        return True
    dim = None if x.shape is None else x.shape[axis]
    count = max(dim, 1) if isinstance(dim, int) else LARGEST_DIM
    least = float_info(DataType(x.dtype).numpy).tiny
    return (found.high - found.low) + math.log(count) >= -math.log(least)
