"""Which dtypes are known to be integers."""

from tiered import DataType
from tiered.rewriter.idioms.comparison import is_integer


def test_integers_are_known() -> None:
    dtypes = (None, DataType.INT8, DataType.UINT64, DataType.FLOAT, DataType.BOOL, DataType.STRING)
    assert [is_integer(dtype) for dtype in dtypes] == [False, True, True, False, False, False]
