"""Which dtypes hold all values of another one: those that every value comes back from."""

import itertools

import numpy as np

from tiered.graph import DataType
from tiered.graph.core.dtypes import float_info, integer_info
from tiered.rewriter.idioms.dtype_ranges import FLOATS, INTEGERS, holds


def extremes(dtype: DataType) -> list[object]:
    """Return the values of a dtype that another one is most likely to lack."""
    if dtype == DataType.BOOL:
        return [0, 1]
    if dtype in INTEGERS:
        info = integer_info(dtype.numpy)
        return [int(info.min), int(info.max), int(info.max) - 1]
    info = float_info(dtype.numpy)
    return [-float(info.max), float(info.smallest_subnormal), 1 + float(info.eps)]


def comes_back(value: object, wide: DataType) -> bool:
    with np.errstate(all="ignore"):
        try:
            kept = np.array(value).astype(wide.numpy)
        except OverflowError:
            return False
        if wide in INTEGERS:
            return int(kept) == value and (wide != DataType.BOOL or value in (0, 1))
        return bool(np.isfinite(kept.astype(np.float64))) and float(kept) == value


def test_a_dtype_holds_another_if_its_extreme_values_come_back() -> None:
    dtypes = [DataType(each) for each in (*INTEGERS, *FLOATS)]
    for wide, narrow in itertools.product(dtypes, dtypes):
        if wide in INTEGERS and narrow in FLOATS:
            assert not holds(wide, narrow), (wide, narrow)
            continue
        expected = all(comes_back(value, wide) for value in extremes(narrow))
        assert holds(wide, narrow) is expected, (wide, narrow)


def test_other_dtypes_hold_nothing() -> None:
    for dtype in (DataType.STRING, DataType.FLOAT8E4M3FN, DataType.COMPLEX64, DataType.INT4):
        assert not holds(dtype, dtype)
        assert not holds(DataType.DOUBLE, dtype)
        assert not holds(dtype, DataType.BOOL)
