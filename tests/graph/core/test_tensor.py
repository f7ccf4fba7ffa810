"""The elements of a tensor, in each of the fields that may hold them."""

import onnx
import pytest
from onnx import numpy_helper

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.tensor import Tensor
from tiered.support.errors import ModelError

LISTED: dict[str, tuple[DataType, list[float]]] = {
    "float_data": (DataType.FLOAT, [0.0, -0.0, float("inf"), 1e-45]),
    "int32_data": (DataType.INT32, [-(1 << 31), 0, 1, (1 << 31) - 1]),
    "int64_data": (DataType.INT64, [-(1 << 63), 0, 1, (1 << 63) - 1]),
    "double_data": (DataType.DOUBLE, [0.0, -0.0, 5e-324, 1.0]),
}


@pytest.mark.parametrize("field", LISTED)
def test_listed_elements_are_those_that_onnx_reads(field: str) -> None:
    dtype, elements = LISTED[field]
    proto = onnx.TensorProto(name="x", data_type=dtype, dims=[2, 2])
    getattr(proto, field).extend(elements)
    found, expected = Tensor(proto).numpy(), numpy_helper.to_array(proto)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.UINT8, DataType.INT16, DataType.BOOL])
def test_narrow_integers_are_listed_as_int32(dtype: DataType) -> None:
    elements = [0, 1, -1, 200]
    proto = onnx.TensorProto(name="x", data_type=dtype, dims=[4], int32_data=elements)
    found, expected = Tensor(proto).numpy(), numpy_helper.to_array(proto)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def test_an_empty_tensor_and_a_scalar_are_read() -> None:
    empty = onnx.TensorProto(name="e", data_type=DataType.FLOAT, dims=[0, 3])
    assert Tensor(empty).numpy().shape == (0, 3)
    scalar = onnx.TensorProto(name="s", data_type=DataType.INT8, int32_data=[-3])
    assert Tensor(scalar).numpy().item() == -3


def test_too_few_elements_are_an_error() -> None:
    proto = onnx.TensorProto(name="x", data_type=DataType.FLOAT, dims=[3], float_data=[1.0])
    with pytest.raises(ModelError, match="its data does not fit dtype FLOAT and dims"):
        Tensor(proto).numpy()
