"""Clip(x, absent, max)  =>  Clip(x, lowest of the dtype, max), and so for an absent max"""

from typing import Any, Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, opt, rewrite, var

_LARGEST: Final = {
    DataType.FLOAT: float.fromhex("0x1.FFFFFEp127"),
    DataType.DOUBLE: float.fromhex("0x1.FFFFFFFFFFFFFp1023"),
}


@rewrite(op.Clip(var.x, opt.min, opt.max), opt_level=1)
def replace_clip_empty_inputs(
    graph: Graph, x: Value, min: Value | None, max: Value | None
) -> Value | Skip:
    """Write an absent bound as the finite limit of the dtype; infinities are clipped to it."""
    if min is not None and max is not None:
        return Skip("both bounds are present")
    if graph.opset() < 11:
        return Skip("before opset 11 the bounds are attributes with defaults")
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if x.dtype in (DataType.FLOAT16, DataType.BFLOAT16):
        return Skip("16-bit floats may be clipped as float32")
    lowest, largest = _limits(DataType(x.dtype))
    result: Value = graph.op.Clip(
        x, lowest if min is None else min, largest if max is None else max
    )
    return result


def _limits(dtype: DataType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    if dtype in _LARGEST:
        return np.array(-_LARGEST[dtype], dtype.numpy), np.array(_LARGEST[dtype], dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return np.array(limits.min, dtype.numpy), np.array(limits.max, dtype.numpy)
