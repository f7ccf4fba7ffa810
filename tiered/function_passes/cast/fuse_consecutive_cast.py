"""Cast(Cast(x, to=b), to=c)  =>  Cast(x, to=c), where b holds every x exactly"""

from collections.abc import Mapping

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_INTEGERS: Mapping[int, tuple[int, int]] = {
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

_FLOATS: Mapping[int, tuple[int, int]] = {
    DataType.FLOAT16: (11, 5),
    DataType.BFLOAT16: (8, 8),
    DataType.FLOAT: (24, 8),
    DataType.DOUBLE: (53, 11),
}
"""Float dtypes: bits of the significand and of the exponent."""


_inner = op.Cast(var.x, to=var.middle, attrs="ignored").shared()


@rewrite(op.Cast(_inner, to=var.to, attrs="ignored"), opt_level=1)
def fuse_consecutive_cast(graph: Graph, x: Value, middle: int, to: int) -> Value | Skip:
    """Cast once: a middle dtype that keeps every value cannot be observed.

    The direct conversion must also be the one that the middle dtype gives: a negative int8 becomes
    something else as uint8 than its float does.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if not _holds(middle, x.dtype):
        return Skip("the middle dtype loses values of x")
    if to == x.dtype:
        return x
    if not _converts_alike(x.dtype, middle, to):
        return Skip("the last dtype may be reached differently from x")
    return graph.op.Cast(x, to=to)


def _holds(wide: int, narrow: int) -> bool:
    """Return whether every value of one dtype is a value of another."""
    if wide == narrow:
        return wide in _INTEGERS or wide in _FLOATS
    if narrow in _INTEGERS:
        signed, bits = _INTEGERS[narrow]
        if wide in _INTEGERS:
            sign, room = _INTEGERS[wide]
            return wide != DataType.BOOL and sign >= signed and room >= bits
        return wide in _FLOATS and _FLOATS[wide][0] >= bits and 2 ** (_FLOATS[wide][1] - 1) > bits
    if narrow in _FLOATS and wide in _FLOATS:
        return all(a >= b for a, b in zip(_FLOATS[wide], _FLOATS[narrow], strict=True))
    return False


def _converts_alike(start: int, middle: int, to: int) -> bool:
    """Return whether start -> to equals start -> middle -> to for each value of start."""
    if to in _FLOATS or to == DataType.BOOL:
        return True
    if to not in _INTEGERS:
        # Text, float8 and 4-bit integers have rules of their own.
        return False
    if start in _FLOATS:
        # What fits is truncated alike; what does not is undefined from either dtype.
        return True
    return middle in _INTEGERS or _holds(to, start)
