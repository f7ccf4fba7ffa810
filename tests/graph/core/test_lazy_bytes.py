"""Large arrays go to a file: elements of fewer than eight bits are packed there."""

import numpy as np
import onnx
import pytest

from tiered import DataType, Model
from tiered.graph import Tensor
from tiered.testing import parse

NUMBERS = np.arange(35).reshape(5, 7) % 8


@pytest.fixture(autouse=True)
def _spills_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.graph.core.tensor.SPILLED", 1)


@pytest.mark.parametrize(
    ("dtype", "nbytes"),
    [
        (DataType.UINT4, 18),
        (DataType.INT4, 18),
        (DataType.FLOAT4E2M1, 18),
        (DataType.INT8, 35),
        (DataType.FLOAT, 140),
    ],
)
def test_elements_come_back(dtype: DataType, nbytes: int) -> None:
    array = NUMBERS.astype(np.float32).astype(dtype.numpy)
    tensor = Tensor.of(array)
    assert (tensor.is_on_disk, tensor.nbytes, tensor.dtype) == (True, nbytes, dtype)
    np.testing.assert_array_equal(tensor.numpy().astype(np.float32), array.astype(np.float32))
    assert tensor.key() == Tensor.of(array.copy()).key()


def test_four_bits_are_saved() -> None:
    model = Model.from_proto(parse("(uint4[5,7] x) => (uint4[5,7] y) { y = Identity(x) }"))
    made = model.main.constant(Tensor.of(NUMBERS.astype(DataType.UINT4.numpy)), "w")
    (node,) = model.main.nodes
    model.main.set_input(node, 0, made)
    (stored,) = model.to_proto().graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored).astype(np.int64), NUMBERS)
