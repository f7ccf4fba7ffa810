"""The elements of a tensor, in each of the fields and files that may hold them."""

import os
from pathlib import Path

import numpy as np
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


def external(folder: Path, array: np.ndarray, **entries: str) -> Tensor:
    """Return a tensor with the elements after 8 bytes of a file; entries say where they are."""
    (folder / "data").write_bytes(b"8 bytes." + array.tobytes())
    proto = numpy_helper.from_array(array, "x")
    proto.ClearField("raw_data")
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in ({"location": "data", "offset": "8"} | entries).items():
        proto.external_data.add(key=key, value=value)
    return Tensor(proto, folder=str(folder))


def sparse(indices: np.ndarray, *dims: int) -> Tensor:
    values = numpy_helper.from_array(np.array([5, 6], np.float32), "v")
    places = numpy_helper.from_array(indices.astype(np.int64), "i")
    return Tensor(onnx.SparseTensorProto(values=values, indices=places, dims=dims))


TEXTS = Tensor.of(np.array(["ab", "c"], object))


def test_dtypes_and_dims_of_no_tensor_are_errors() -> None:
    for dtype, dims, because in (
        (99, [2], "tensor 'x' has an unknown data_type: 99"),
        (1, [2, -1], r"tensor 'x' has negative dims: \[2, -1\]"),
        (1, [1 << 62, 2], "tensor 'x' has impossible dims"),
    ):
        with pytest.raises(ModelError, match=because):
            Tensor(onnx.TensorProto(data_type=dtype, dims=dims)).check("x")
    for dims in ([], [0], [1 << 62], [(1 << 63) - 1]):
        Tensor(onnx.TensorProto(data_type=1, dims=dims)).check("x")


def test_large_arrays_wait_in_a_file() -> None:
    array = np.array([1, 2], np.float32)
    assert not Tensor.of(array).is_on_disk
    assert not Tensor.of(array, in_memory=9).is_on_disk
    spilled = Tensor.of(array, in_memory=8)
    assert (spilled.is_on_disk, spilled.is_stored, spilled.is_external) == (True, True, False)
    assert spilled.numpy().tolist() == [1, 2]
    assert spilled.embedded("y") == numpy_helper.from_array(array, "y")
    assert not Tensor.of(np.array(["a"], object), in_memory=0).is_on_disk


def test_which_tensors_may_be_in_a_file_of_their_own(tmp_path: Path) -> None:
    array = np.array([1, 2], np.float32)
    apart = external(tmp_path, array)
    assert (apart.is_on_disk, apart.is_stored, apart.is_external) == (True, False, True)
    assert apart.embedded("x").data_location == onnx.TensorProto.EXTERNAL
    for tensor, expected in (
        (apart, True),
        (Tensor.of(array), True),
        (TEXTS, False),
        (sparse(np.array([0, 1]), 4), False),
    ):
        assert tensor.can_be_external is expected


def test_the_bytes_that_elements_take_in_a_file() -> None:
    for tensor, nbytes in (
        (Tensor.of(np.zeros((2, 3), np.float32)), 24),
        (Tensor.of(np.zeros((), np.int8)), 1),
        (Tensor.of(np.zeros(3, DataType.INT4.numpy)), 2),
        (Tensor.of(np.zeros(4, DataType.INT4.numpy)), 2),
        (TEXTS, 3),
        (Tensor(numpy_helper.from_array(np.array(["ab", "c"], object))), 3),
    ):
        assert tensor.nbytes == nbytes
    found = sparse(np.array([0, 1]), 4)
    assert found.proto is not None
    assert found.nbytes == found.proto.ByteSize()


def test_small_arrays_are_kept_and_none_is_written_to() -> None:
    for count, is_kept in ((1 << 12, True), ((1 << 12) + 1, False)):
        tensor = Tensor(numpy_helper.from_array(np.zeros(count, np.float32)))
        assert (tensor.numpy() is tensor.numpy()) is is_kept
        assert not tensor.numpy().flags.writeable


def test_a_sparse_tensor_has_its_values_at_places_along_one_axis_or_several() -> None:
    assert sparse(np.array([3, 0]), 2, 2).dense().tolist() == [[6, 0], [0, 5]]
    assert sparse(np.array([[1, 0], [0, 1]]), 2, 2).dense().tolist() == [[0, 6], [5, 0]]
    assert Tensor.of(np.array([1])).dense().tolist() == [1]


@pytest.mark.parametrize(
    ("array", "dtype", "expected"),
    [
        (np.array([1, 2], np.float32), DataType.INT64, True),
        (np.array([1.5], np.float32), DataType.INT64, False),
        (np.array([-0.0], np.float32), DataType.INT64, False),
        (np.array([np.nan, -0.0], np.float32), DataType.FLOAT16, True),
        (np.array([1e9], np.float32), DataType.FLOAT16, False),
        (np.array([200], np.uint8), DataType.INT8, False),
        (np.array([100], np.uint8), DataType.INT8, True),
        (np.array([1], np.uint8), DataType.STRING, False),
        (np.array(["1"], object), DataType.INT8, False),
    ],
)
def test_numbers_are_the_same_in_another_dtype_or_not_converted(
    array: np.ndarray, dtype: DataType, expected: bool
) -> None:
    found = Tensor.of(array).converted(dtype)
    assert (found is not None) is expected
    if found is not None:
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), array)
    assert sparse(np.array([0, 1]), 4).converted(DataType.DOUBLE) is None


def test_keys_are_equal_if_the_bits_are(tmp_path: Path) -> None:
    for count in (3, 1 << 12, 5000):
        array = np.arange(count, dtype=np.float32)
        tensors = [
            Tensor.of(array),
            Tensor(numpy_helper.from_array(array)),
            Tensor.of(array, in_memory=0),
            external(tmp_path, array),
        ]
        assert len({tensor.key() for tensor in tensors}) == 1
        assert len({tensor.outline() for tensor in tensors}) == 1
        assert tensors[0].key() is tensors[0].key()
        others = [array.astype(np.int32), array[None], np.where(array == count - 1, -1, array)]
        assert len({Tensor.of(each).key() for each in (array, *others)}) == 4
    assert TEXTS.key() == Tensor.of(np.array([b"ab", b"c"], object)).key() == TEXTS.outline()
    assert TEXTS.key() != Tensor.of(np.array(["ab", "d"], object)).key()
    assert sparse(np.array([0, 1]), 4).key() == sparse(np.array([0, 1]), 4).outline()
    assert sparse(np.array([0, 1]), 4).key() != sparse(np.array([0, 2]), 4).key()


def test_an_outline_is_of_the_first_elements() -> None:
    array = np.zeros(65, np.int64)
    for place, same in ((63, False), (64, True)):
        other = array.copy()
        other[place] = 1
        assert (Tensor.of(array).outline() == Tensor.of(other).outline()) is same


def test_a_proto_of_the_same_name_is_the_one_that_was_loaded() -> None:
    proto = numpy_helper.from_array(np.array([1]), "x")
    assert Tensor(proto).to_proto("x") is proto
    assert Tensor(proto).to_proto("y").name == "y"
    assert proto.name == "x"


def test_elements_in_a_file_of_their_own_are_read(tmp_path: Path) -> None:
    for array in (
        np.array([1, 2], np.int64),
        np.arange(5000, dtype=np.int16),
        np.zeros((0, 3), np.float32),
        np.array(True),
    ):
        found = external(tmp_path, array, length=str(array.nbytes)).numpy()
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
    nibbles = external(tmp_path, np.array([0x21, 0x43], np.uint8))
    assert isinstance(nibbles.proto, onnx.TensorProto)
    proto = onnx.TensorProto()
    proto.CopyFrom(nibbles.proto)
    proto.data_type, proto.dims[0] = DataType.UINT4, 4
    assert Tensor(proto, folder=str(tmp_path)).numpy().tolist() == [1, 2, 3, 4]


def test_a_tensor_has_no_place_until_it_is_placed(tmp_path: Path) -> None:
    apart = external(tmp_path, np.array([1, 2], np.int64))
    assert (apart.place, Tensor.of(np.array([1])).place) == (None, None)
    assert sparse(np.array([0, 1]), 4).place is None


@pytest.mark.parametrize(
    ("entries", "because"),
    [
        ({"location": ""}, "is at ''; expected a file inside the folder of the model"),
        ({"location": "/etc/passwd"}, "expected a file inside the folder"),
        ({"location": "sub/../../data"}, "expected a file inside the folder"),
        ({"location": "..\\data"}, "expected a file inside the folder"),
        ({"location": "c:data"}, "expected a file inside the folder"),
        ({"location": "link"}, "is at 'link', a symbolic link; expected a plain file"),
        ({"location": "linked/data"}, "a symbolic link"),
        ({"location": "missing"}, "is missing: no file"),
        ({"location": "folder"}, "is missing: no file"),
        ({"offset": "x"}, "has an offset or length that is not an integer"),
        ({"length": "x"}, "has an offset or length that is not an integer"),
        ({"length": "15"}, "has 15 bytes, dtype and dims need 16"),
        ({"offset": "-1"}, "is bytes -1 to 15 of .*, which has 24"),
        ({"offset": "9"}, "is bytes 9 to 25 of .*, which has 24"),
    ],
)
def test_bytes_elsewhere_are_errors(tmp_path: Path, entries: dict[str, str], because: str) -> None:
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path / "data", tmp_path / "link")
    os.symlink(tmp_path / "folder", tmp_path / "linked")
    (tmp_path / "folder" / "data").write_bytes(b"")
    tensor = external(tmp_path, np.array([1, 2], np.int64), **entries)
    with pytest.raises(ModelError, match=because):
        tensor.external_span()


def test_bytes_up_to_both_ends_of_a_file_are_read(tmp_path: Path) -> None:
    array = np.array([1, 2], np.int64)
    assert external(tmp_path, array).external_span() == (str(tmp_path / "data"), 8, 16)
    assert external(tmp_path, array, offset="0").external_span()[1:] == (0, 16)


def test_a_file_of_another_size_than_the_tensor_is_an_error() -> None:
    spilled = Tensor.of(np.array([1, 2], np.float32), in_memory=0)
    assert isinstance(spilled.proto, onnx.TensorProto)
    proto = onnx.TensorProto()
    proto.CopyFrom(spilled.proto)
    proto.dims[0] = 3
    with pytest.raises(ModelError, match=r"has 8 bytes of data, its dtype and dims \[3\] need 12"):
        Tensor(proto).check("x")


def test_external_data_is_placed_without_being_read(tmp_path: Path) -> None:
    apart = external(tmp_path, np.array([1, 2], np.int64))
    for place in ("model", "data"):
        placed = apart.placed(place)
        assert (placed.place, placed.is_stored, placed.is_external) == (place, True, False)
        assert placed.numpy().tolist() == [1, 2]
        assert placed.embedded("n").raw_data == np.array([1, 2], np.int64).tobytes()
        inside = Tensor.of(np.array([3])).placed(place)
        assert (inside.place, inside.is_on_disk) == (place, False)
        written = inside.embedded("n")
        assert (len(written.external_data), written.raw_data) == (0, np.array([3]).tobytes())
    found = sparse(np.array([0, 1]), 4)
    assert (found.is_on_disk, found.is_stored, found.is_external) == (False, False, False)
    assert Tensor.of(np.array([3])).to_proto("n") == numpy_helper.from_array(np.array([3]), "n")


def test_memory_is_asked_for_before_large_arrays_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("tiered.graph.core.tensor.check_memory", asked.append)
    for count in (1 << 18, (1 << 18) - 1):
        array = np.zeros(count, np.float32)
        Tensor(numpy_helper.from_array(array)).numpy()
        external(tmp_path, array).numpy()
    assert asked == [1 << 20]


def test_arrays_of_at_most_16_kib_are_read_from_files_at_once(tmp_path: Path) -> None:
    for count, is_mapped in ((1 << 12, False), ((1 << 12) + 1, True)):
        array = np.zeros(count, np.float32)
        found = external(tmp_path, array).numpy()
        assert isinstance(found, np.memmap) is is_mapped
        assert isinstance(Tensor.of(array).key()[2], bytes)
        assert (len(Tensor.of(array).key()[2]) == array.nbytes) is not is_mapped


def test_bytes_and_nibbles_in_files_are_read_and_have_keys(tmp_path: Path) -> None:
    large = np.arange(40000).astype(np.uint8)
    found = external(tmp_path, large)
    np.testing.assert_array_equal(found.numpy(), large)
    assert isinstance(found.numpy(), np.memmap)
    assert found.key() == Tensor.of(large).key()
    nibbles = external(tmp_path, large)
    assert isinstance(nibbles.proto, onnx.TensorProto)
    proto = onnx.TensorProto()
    proto.CopyFrom(nibbles.proto)
    proto.data_type, proto.dims[0] = DataType.UINT4, 80000
    packed = Tensor(proto, folder=str(tmp_path))
    assert packed.key() == Tensor.of(packed.numpy()).key()
    whole = (tmp_path / "data").read_bytes()
    (tmp_path / "data").write_bytes(whole[8:])
    proto = onnx.TensorProto()
    proto.CopyFrom(found.proto)  # type: ignore[arg-type]  # of a TensorProto
    del proto.external_data[1]
    np.testing.assert_array_equal(Tensor(proto, folder=str(tmp_path)).numpy(), large)


def test_raw_data_of_each_dtype_is_read_as_onnx_reads_it() -> None:
    for dtype in DataType:
        if dtype is DataType.STRING:
            continue
        array = np.array([0, 1, 1, 0]).astype(dtype.numpy)
        proto = numpy_helper.from_array(array)
        found = Tensor(proto).numpy()
        assert (found.dtype, found.tobytes()) == (
            array.dtype,
            numpy_helper.to_array(proto).tobytes(),
        )
