"""The table of dtypes: ONNX's number and name, the numpy dtype, and the bits of an element.

This module does not load onnx, because processes that only run models import it too.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np

# ml_dtypes has no annotations; these functions accept every ONNX dtype, numpy's own included.
_finfo: Any = ml_dtypes.finfo
_iinfo: Any = ml_dtypes.iinfo


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether it is a real float: float64 down to float4."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def float_info(dtype: np.dtype[Any]) -> Any:
    """Return `finfo`: bits, eps, max, min, smallest_subnormal, ..."""
    return _finfo(dtype)


def integer_info(dtype: np.dtype[Any]) -> Any:
    """Return `iinfo`: bits, min, max."""
    return _iinfo(dtype)


def _bits(dtype: np.dtype[Any]) -> int:
    if dtype.kind == "O":
        return 0
    if dtype.kind in "bc":
        return 8 * dtype.itemsize
    return int((float_info if is_float(dtype) else integer_info)(dtype).bits)


class DataType(IntEnum):
    """The dtypes of TensorProto, by ONNX's names.

    Attributes:
        numpy: the numpy dtype, one of ml_dtypes where numpy has none.
        bits: the bits of one stored element; 0 for strings, which have no fixed size.
    """

    numpy: np.dtype[Any]
    bits: int

    FLOAT = 1, np.float32
    UINT8 = 2, np.uint8
    INT8 = 3, np.int8
    UINT16 = 4, np.uint16
    INT16 = 5, np.int16
    INT32 = 6, np.int32
    INT64 = 7, np.int64
    STRING = 8, np.object_
    BOOL = 9, np.bool_
    FLOAT16 = 10, np.float16
    DOUBLE = 11, np.float64
    UINT32 = 12, np.uint32
    UINT64 = 13, np.uint64
    COMPLEX64 = 14, np.complex64
    COMPLEX128 = 15, np.complex128
    BFLOAT16 = 16, ml_dtypes.bfloat16
    FLOAT8E4M3FN = 17, ml_dtypes.float8_e4m3fn
    FLOAT8E4M3FNUZ = 18, ml_dtypes.float8_e4m3fnuz
    FLOAT8E5M2 = 19, ml_dtypes.float8_e5m2
    FLOAT8E5M2FNUZ = 20, ml_dtypes.float8_e5m2fnuz
    UINT4 = 21, ml_dtypes.uint4
    INT4 = 22, ml_dtypes.int4
    FLOAT4E2M1 = 23, ml_dtypes.float4_e2m1fn
    FLOAT8E8M0 = 24, ml_dtypes.float8_e8m0fnu
    UINT2 = 25, ml_dtypes.uint2
    INT2 = 26, ml_dtypes.int2
    FLOAT6E2M3 = 27, ml_dtypes.float6_e2m3fn
    FLOAT6E3M2 = 28, ml_dtypes.float6_e3m2fn

    # The default is for type checkers, which check `DataType(1)` against this signature.
    def __new__(cls, number: int, scalar: Any = None) -> DataType:
        member = int.__new__(cls, number)
        member._value_ = number
        member.numpy = np.dtype(scalar)
        member.bits = _bits(member.numpy)
        return member

    @property
    def is_float(self) -> bool:
        """Return whether it is a binary floating-point dtype of 16 bits or more."""
        return self in (self.FLOAT, self.FLOAT16, self.DOUBLE, self.BFLOAT16)

    @property
    def has_identity(self) -> bool:
        """Return whether onnxruntime has an Identity of it: not of less than 8 bits."""
        return self.bits == 0 or self.bits >= 8

    @property
    def is_native(self) -> bool:
        """Return whether numpy itself has this dtype, of elements of a fixed size."""
        return self.numpy.isbuiltin == 1 and self.bits > 0


_BITS = {dtype.value: dtype.bits for dtype in DataType}


def bits_of(dtype: int) -> int:
    """Return the bits of one stored element; 0 for strings and unknown dtypes."""
    return _BITS.get(dtype, 0)
