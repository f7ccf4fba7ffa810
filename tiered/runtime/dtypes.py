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
