"""Large arrays go to a file: elements of fewer than eight bits are packed there."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import DataType, Model
from tiered.graph import Tensor
from tiered.graph.core.lazy_bytes import (
    Place,
    blocks_of_file,
    is_stored,
    note_size,
    place_of,
    set_place,
    span_of_stored,
    spill,
)
from tiered.support.errors import ModelError
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


def test_the_place_of_a_tensor_is_the_last_that_was_set() -> None:
    proto = onnx.numpy_helper.from_array(np.zeros(2))
    assert place_of(proto) is None
    places: tuple[Place | None, ...] = ("model", "data", None, "data")
    for place in places:
        set_place(proto, place)
        assert place_of(proto) == place
        assert len(proto.external_data) == (place is not None)
    proto.data_location = onnx.TensorProto.EXTERNAL
    assert place_of(proto) is None
    spilled = spill(np.zeros(2))
    assert is_stored(spilled)
    set_place(spilled, "model")
    assert (place_of(spilled), len(spilled.external_data)) == ("model", 4)
    spilled.data_location = onnx.TensorProto.DEFAULT
    assert not is_stored(spilled)
    assert not is_stored(onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL))
    assert span_of_stored(proto) is None


def test_a_file_of_weights_that_changed_is_an_error() -> None:
    proto = spill(np.arange(3, dtype=np.int16))
    found = span_of_stored(proto)
    assert found is not None
    path = Path(found[0])
    assert found[1:] == (0, 6)
    assert note_size(proto) == proto.ByteSize() - onnx.TensorProto(data_type=5, dims=[3]).ByteSize()
    assert list(blocks_of_file(str(path), 2, 4)) == [b"\1\0\2\0"]
    with pytest.raises(ModelError, match="became shorter while it was read"):
        list(blocks_of_file(str(path), 2, 5))
    path.write_bytes(b"8 bytes.")
    with pytest.raises(ModelError, match="was changed while its weights were in use"):
        span_of_stored(proto)
    path.unlink()
    with pytest.raises(ModelError, match=r"cannot read .* any more: No such file"):
        span_of_stored(proto)


def test_parts_of_a_file_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.graph.core.lazy_bytes._BLOCK", 4)
    monkeypatch.setattr("tiered.graph.core.lazy_bytes.SPILLED", 8)
    for array in (NUMBERS.astype(np.int16), NUMBERS.astype(np.int16).T, np.array(3, np.int16)):
        found = span_of_stored(spill(array))
        assert found is not None
        blocks = list(blocks_of_file(*found))
        assert [len(block) for block in blocks[:-1]] == [4] * (len(blocks) - 1)
        assert b"".join(blocks) == array.tobytes()
    nibbles = NUMBERS.astype(DataType.UINT4.numpy)
    found = span_of_stored(spill(nibbles))
    assert found is not None
    packed = onnx.numpy_helper.from_array(nibbles).raw_data
    assert b"".join(blocks_of_file(*found)) == packed
