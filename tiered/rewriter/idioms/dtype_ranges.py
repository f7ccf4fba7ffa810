"""Which dtypes hold all values of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.graph.core.dtypes import DataType

INTEGERS: Final[Mapping[int, tuple[int, int]]] = {
    DataType.BOOL: (0, 1),
    DataType.UINT8: (0, 8),
    DataType.UINT16: (0, 16),
    DataType.UINT32: (0, 32),
    DataType.UINT64: (0, 64),
    DataType.INT8: (1, 7),
    DataType.INT16: (1, 15),
    DataType.INT32: (1, 31),
    DataType.INT64: (1, 63),
}
"""Integer dtypes: whether signed, and the bits of the largest value."""

FLOATS: Final[Mapping[int, tuple[int, int]]] = {
    DataType.FLOAT16: (11, 5),
    DataType.BFLOAT16: (8, 8),
    DataType.FLOAT: (24, 8),
    DataType.DOUBLE: (53, 11),
}
"""Float dtypes: bits of the significand and of the exponent."""


def holds(wide: int, narrow: int) -> bool:
    """Return whether every value of one dtype is a value of another."""
    if wide == narrow:
        return wide in INTEGERS or wide in FLOATS
    if narrow in INTEGERS:
        signed, bits = INTEGERS[narrow]
        if wide in INTEGERS:
            sign, room = INTEGERS[wide]
            return sign >= signed and room >= bits
        # The exponents of each float reach beyond its significand.
        return wide in FLOATS and FLOATS[wide][0] >= bits
    if narrow in FLOATS and wide in FLOATS:
        return all(a >= b for a, b in zip(FLOATS[wide], FLOATS[narrow], strict=True))
    return False
