"""Numbers that a normal distribution hardly draws: shifted, zero, constant, small, over decades.

What cancels, divides by a small number or needs an epsilon shows on these alone. Each row of an
input is of one kind, and each plane of one with four dims or more, so that a normalization along
them meets every kind by itself. A vector is one row of several kinds; a short one stays normal, as
nothing but the shift, without a sign, would be left of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

RULE: Final = "rows shifted by {:g}, zero, over decades, constant, normal, small"
_KINDS: Final = 6
_PLANES: Final = 4
"""The rank from which on the last two dims belong together."""
_WIDE: Final = (100.0, -3.0, 2.0)
"""The shift, and the least and the greatest power of 10, for floats of 32 bits and more."""
_NARROW: Final = (10.0, -2.0, 1.0)
"""The same for 16 bits: squares and sums of them stay within their range."""


def varied(normal: Array, bits: int, first: int) -> tuple[Array, str]:
    """Return normal numbers with rows of every kind, and the rule in words.

    Args:
        normal: drawn from a normal distribution.
        bits: of the dtype that the numbers are for.
        first: the kind of the first row.
    """
    shift, low, high = _WIDE if bits >= 32 else _NARROW
    inner = 2 if normal.ndim >= _PLANES else int(normal.ndim > 1)
    size = int(np.prod(normal.shape[normal.ndim - inner :]))
    if not normal.size or (not inner and normal.size < _KINDS):
        return normal, "normal distribution"
    rows = normal.reshape(-1, size).copy()
    kind = (np.arange(len(rows)) + first) % _KINDS
    rows[kind == 0] += shift
    rows[kind == 1] = 0
    rows[kind == 2] *= 10 ** np.linspace(low, high, size)
    rows[kind == 3] = rows[kind == 3][:, :1]
    rows[kind == 5] *= 10.0**low
    return rows.reshape(normal.shape), RULE.format(shift)
