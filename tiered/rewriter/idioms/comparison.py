"""Comparisons: dtypes without NaN."""

from __future__ import annotations

import numpy as np

from tiered.graph import DataType


def is_integer(dtype: int | None) -> bool:
    """Return whether a dtype is known to be one of integers."""
    return dtype is not None and np.issubdtype(DataType(dtype).numpy, np.integer)
