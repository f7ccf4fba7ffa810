"""What numpy and ml_dtypes know about a dtype, behind one typed door."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

# ml_dtypes has no annotations; these take every dtype that onnx has, numpy's own included.
_finfo: Any = ml_dtypes.finfo
_iinfo: Any = ml_dtypes.iinfo


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a real float: float64 down to float4."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def float_info(dtype: np.dtype[Any]) -> Any:
    """Return `finfo`: bits, eps, max, min, smallest_subnormal, ..."""
    return _finfo(dtype)


def integer_info(dtype: np.dtype[Any]) -> Any:
    """Return `iinfo`: bits, min, max."""
    return _iinfo(dtype)


def type_proto_of(value: Any) -> Any:
    """Return the TypeProto of an array, or of a sequence of arrays.

    Raises:
        TypeError: a value of another kind, or an empty sequence: nobody knows of what.
    """
    from onnx import TypeProto, helper

    if isinstance(value, list) and value:
        kind = TypeProto()
        kind.sequence_type.elem_type.CopyFrom(type_proto_of(value[0]))
        kind.sequence_type.elem_type.tensor_type.ClearField("shape")
        return kind
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"no type can be told of a {type(value).__name__}")
    is_text = value.dtype.kind in "OUS"
    element = 8 if is_text else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(element, value.shape)
