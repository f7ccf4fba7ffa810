"""The table of dtypes agrees with ONNX and numpy."""

import numpy as np
import onnx
import pytest

from tiered.graph.core.dtypes import DataType, bits_of, float_info, integer_info, is_float

FLOATS = [dtype for dtype in DataType if dtype.name.startswith(("FLOAT", "BFLOAT", "DOUBLE"))]


@pytest.mark.parametrize("dtype", DataType)
def test_number_name_and_numpy_are_onnxs(dtype: DataType) -> None:
    assert onnx.TensorProto.DataType.Name(dtype) == dtype.name
    assert onnx.helper.tensor_dtype_to_np_dtype(dtype) == dtype.numpy
    assert DataType(int(dtype)) is dtype


@pytest.mark.parametrize("dtype", DataType)
def test_floats_are_told_from_all_others(dtype: DataType) -> None:
    assert is_float(dtype.numpy) is (dtype in FLOATS)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        *(("STRING", 0), ("BOOL", 8), ("INT64", 64), ("COMPLEX64", 64), ("COMPLEX128", 128)),
        *(("BFLOAT16", 16), ("FLOAT8E8M0", 8), ("FLOAT6E2M3", 6), ("FLOAT4E2M1", 4), ("INT2", 2)),
    ],
)
def test_bits_are_those_of_a_stored_element(name: str, bits: int) -> None:
    assert DataType[name].bits == bits == bits_of(DataType[name])
    assert DataType[name].has_identity is (bits == 0 or bits >= 8)


def test_an_unknown_dtype_has_no_bits() -> None:
    assert bits_of(0) == bits_of(999) == 0


def test_native_dtypes_are_numpys_of_fixed_size() -> None:
    others = {dtype.name for dtype in DataType if not dtype.is_native}
    small = {dtype.name for dtype in DataType if 0 < dtype.bits < 8}
    assert others == small | {"STRING", "BFLOAT16"} | {
        dtype.name for dtype in DataType if dtype.name.startswith("FLOAT8")
    }


def test_floats_of_16_bits_and_more() -> None:
    assert [dtype.name for dtype in DataType if dtype.is_float] == [
        "FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16",
    ]  # fmt: skip


def test_limits_are_those_of_the_dtype() -> None:
    assert float_info(DataType.FLOAT8E4M3FN.numpy).max == 448
    assert float_info(np.dtype(np.float16)).smallest_subnormal == 2**-24
    assert integer_info(DataType.INT4.numpy).min == -8
    assert integer_info(np.dtype(np.uint16)).max == 65535
