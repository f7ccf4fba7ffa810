"""Weights in files: large ones stay there, small ones are read, and what is wrong is named."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import proto
from tiered.runtime import Session
from tiered.runtime.external_data import MOST_READ, bytes_on_disk, take_in, with_files
from tiered.support.errors import ModelError

LARGE = (1 << 14) // 4 + 1
"""The elements of a float tensor that is large enough to stay in its file."""


def model(*weights: onnx.TensorProto) -> onnx.ModelProto:
    made = proto("g (float[N] x) => (float[N] y) { y = Neg(x) }")
    made.graph.initializer.extend(weights)
    return made


def stored(folder: Path, name: str, array: Any, place: str = "", **held: int) -> onnx.TensorProto:
    """Write an array to a file of its own, and return the tensor that names it."""
    tensor = numpy_helper.from_array(array, name)
    path = folder / (place or f"{name}.bin")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\0" * held.get("offset", 0) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entries = {"location": place or f"{name}.bin", **held}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def entries(tensor: onnx.TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


@pytest.mark.parametrize(("size", "stays"), [(LARGE, True), (LARGE - 1, False), (0, False)])
def test_only_large_weights_stay_in_their_files(tmp_path: Path, size: int, stays: bool) -> None:
    array = np.arange(size, dtype=np.float32)
    made = model(stored(tmp_path, "w", array))
    root = with_files(made, str(tmp_path))
    (tensor,) = made.graph.initializer
    if stays:
        assert root == str(tmp_path.resolve())
        assert entries(tensor) == {"location": "w.bin", "offset": "0", "length": str(4 * size)}
        assert not tensor.raw_data
    else:
        assert root == ""
        assert not tensor.external_data
        assert tensor.data_location == onnx.TensorProto.DEFAULT
        assert numpy_helper.to_array(tensor).tolist() == array.tolist()


def test_large_weights_of_bytes_stay_in_their_files(tmp_path: Path) -> None:
    made = model(stored(tmp_path, "w", np.zeros(4 * LARGE, np.uint8)))
    assert with_files(made, str(tmp_path)) == str(tmp_path.resolve())


def test_files_are_found_from_the_nearest_folder_above_them(tmp_path: Path) -> None:
    array = np.arange(LARGE, dtype=np.float32)
    made = model(
        stored(tmp_path, "w", array, "a/b/w.bin", offset=8, length=4 * LARGE),
        stored(tmp_path, "v", array, "a/v.bin"),
        stored(tmp_path, "s", array[:2], "s.bin", offset=4),
    )
    root = with_files(made, str(tmp_path))
    assert root == str(tmp_path.resolve() / "a")
    w, v, s = made.graph.initializer
    assert entries(w) == {"location": "b/w.bin", "offset": "8", "length": str(4 * LARGE)}
    assert entries(v)["location"] == "v.bin"
    assert numpy_helper.to_array(s).tolist() == [0, 1]


def test_onnxruntime_reads_them_from_there(tmp_path: Path) -> None:
    made = proto("g (float[N] x) => (float[N] y) { y = Add(x, w) }")
    array = np.arange(LARGE, dtype=np.float32)
    made.graph.initializer.append(stored(tmp_path, "w", array, "a/w.bin", offset=4))
    root = with_files(made, str(tmp_path))
    found = Session(made, folder=root).run({"x": np.ones(LARGE, np.float32)})
    assert np.array_equal(found["y"], array + 1)


def test_weights_of_bodies_and_attributes_are_read(tmp_path: Path) -> None:
    array = np.arange(LARGE, dtype=np.float32)
    made = model(stored(tmp_path, "w", array))
    tensor = stored(tmp_path, "inner", array)
    made.graph.node.append(onnx.helper.make_node("Constant", [], ["c"], value=tensor))
    with_files(made, str(tmp_path))
    inner = made.graph.node[-1].attribute[0].t
    assert np.array_equal(numpy_helper.to_array(inner), array)
    assert made.graph.initializer[0].external_data


def test_numbers_of_few_bits_are_read(tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor(
        "w", onnx.TensorProto.INT4, [4 * LARGE * 2], b"\x21" * 4 * LARGE, raw=True
    )
    (tmp_path / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    made = model(tensor)
    assert with_files(made, str(tmp_path)) == ""
    assert made.graph.initializer[0].raw_data == b"\x21" * 4 * LARGE


def test_without_a_common_folder_all_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drives have none."""

    def none(_: Any) -> str:
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr("tiered.runtime.external_data.os.path.commonpath", none)
    made = model(stored(tmp_path, "w", np.arange(LARGE, dtype=np.float32)))
    assert with_files(made, str(tmp_path)) == ""
    assert not made.graph.initializer[0].external_data
    assert len(made.graph.initializer[0].raw_data) == 4 * LARGE


def test_a_model_without_files_is_left_as_it_is(tmp_path: Path) -> None:
    made = model(numpy_helper.from_array(np.arange(LARGE, dtype=np.float32), "w"))
    before = made.SerializeToString()
    assert with_files(made, str(tmp_path)) == ""
    assert take_in(made, str(tmp_path)) is made
    assert made.SerializeToString() == before
    assert bytes_on_disk(made) == 0


def test_all_weights_are_taken_in(tmp_path: Path) -> None:
    array = np.arange(LARGE, dtype=np.float32)
    made = model(stored(tmp_path, "w", array, offset=12), stored(tmp_path, "v", array[:3]))
    assert bytes_on_disk(made) == 4 * (LARGE + 3)
    take_in(made, str(tmp_path))
    assert bytes_on_disk(made) == 0
    for tensor, expected in zip(made.graph.initializer, (array, array[:3]), strict=True):
        assert np.array_equal(numpy_helper.to_array(tensor), expected)
        assert not tensor.external_data
    assert MOST_READ == 268_435_456


@pytest.mark.parametrize("rule", [with_files, take_in])
@pytest.mark.parametrize(
    ("place", "length"), [("w.bin", 4 * LARGE + 1), ("gone.bin", 4), ("../w.bin", 4)]
)
def test_a_file_that_is_not_as_it_should_be_is_an_error(
    tmp_path: Path, rule: Any, place: str, length: int
) -> None:
    folder = tmp_path / "model"
    tensor = stored(folder, "w", np.arange(LARGE, dtype=np.float32), length=length)
    tensor.external_data[0].value = place
    with pytest.raises(ModelError):
        rule(model(tensor), str(folder))
