"""Equal tensors are found exactly, and different ones are not read to the end."""

from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest

from tiered import DataType, Model, PassContext, Tensor, get_pass
from tiered.graph.queries import equal_tensors
from tiered.graph.queries.equal_tensors import EqualTensors
from tiered.testing import parse

BYTES = 1 << 19
"""More than a tensor has whose hash is its key."""


def of_files(folder: Path, contents: list[bytes]) -> list[Tensor]:
    """Return tensors of bytes in one file."""
    (folder / "weights").write_bytes(b"".join(contents))
    found, offset = [], 0
    for content in contents:
        proto = onnx.TensorProto(data_type=onnx.TensorProto.UINT8, dims=[len(content)])
        proto.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", offset), ("length", len(content))):
            proto.external_data.add(key=key, value=str(value))
        found.append(Tensor(proto, folder=str(folder)))
        offset += len(content)
    return found


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each read of a tensor."""
    counts: list[int] = []
    inner = equal_tensors._read

    def counted(tensor: Tensor, at: int, count: int) -> bytes:
        counts.append(count)
        return inner(tensor, at, count)

    monkeypatch.setattr(equal_tensors, "_read", counted)
    return counts


@pytest.mark.parametrize("seed", range(6))
def test_keys_are_equal_where_all_bytes_are(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    contents: list[bytes] = [bytes(BYTES)]
    for _ in range(12):
        changed = bytearray(random.choice(contents))
        for _ in range(random.choice((0, 1, 1, 3))):
            changed[random.randrange(BYTES)] ^= 1
        contents.append(bytes(changed))
    tensors = of_files(tmp_path, contents)
    # One of each kind of storage is among them.
    tensors[3] = Tensor.of(np.frombuffer(contents[3], np.uint8))
    keys = EqualTensors(1 << 40).keys(tensors)
    for one, own in zip(contents, keys, strict=True):
        for other, its in zip(contents, keys, strict=True):
            assert (own == its) is (one == other)


def test_what_differs_somewhere_is_not_read_to_the_end(tmp_path: Path, read: list[int]) -> None:
    ends = [bytes(BYTES - 1) + bytes([at]) for at in range(8)]
    assert len(set(EqualTensors(1 << 40).keys(of_files(tmp_path, ends)))) == 8
    assert sum(read) < 8 * BYTES / 8


def test_one_place_of_a_file_is_not_read(tmp_path: Path, read: list[int]) -> None:
    tensor, other = of_files(tmp_path, [bytes(BYTES), bytes(BYTES - 8)])
    keys = EqualTensors(1 << 40).keys_of_all(
        [tensor, Tensor(tensor.proto, folder=str(tmp_path)), other]
    )
    assert keys[0] == keys[1] != keys[2]
    assert not read


def test_no_more_is_read_than_allowed(tmp_path: Path, read: list[int]) -> None:
    comparison = EqualTensors(BYTES)
    keys = comparison.keys(of_files(tmp_path, [bytes(BYTES)] * 3))
    assert len(set(keys)) == 3
    assert len(comparison.uncompared) == 3
    assert sum(read) <= BYTES


def test_as_many_as_can_be_finished_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    monkeypatch.setattr(equal_tensors, "_LARGEST", 1 << 16)
    comparison = EqualTensors(3 * BYTES)
    keys = comparison.keys(of_files(tmp_path, [bytes(BYTES)] * 4))
    assert len(set(keys)) < 4
    assert len(comparison.uncompared) == len(set(keys)) - 1
    assert sum(read) <= 3 * BYTES


def test_the_pass_says_what_it_did_not_compare(tmp_path: Path) -> None:
    model = parse(
        "(float[1] x) => (float[N] y) <float[1] a = {0}, float[1] b = {0}>"
        " { h = Add(x, a) y = Add(h, b) }"
    )
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.zeros(BYTES, np.float32), tensor.name))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights")
    for most, left, remarks in (("1KB", 2, 1), ("1GB", 1, 0)):
        view, ctx = Model.load(path), PassContext.isolated()
        get_pass("eliminate_duplicate_initializer", max_read=most).apply(view, ctx)
        assert len(view.main.initializers) == left
        assert len([each for each in ctx.remarks if "max_read=" in str(each)]) == remarks


def test_small_sparse_and_packed_tensors_have_their_own_keys() -> None:
    weights, places = (onnx.helper.make_tensor(name, 7, [1], [0]) for name in "vi")
    large = equal_tensors._SMALL + 1
    for tensor, is_own in (
        (Tensor.of(np.zeros(large - 1, np.int8)), True), (Tensor.of(np.zeros(large, np.int8)), False),
        (Tensor(onnx.helper.make_sparse_tensor(weights, places, [large])), True),
        (Tensor.of(np.zeros(2 * large, DataType.INT4.numpy)), True),
    ):  # fmt: skip
        (key,) = EqualTensors(0).keys([tensor])
        assert (key == tensor.key()) is is_own


def test_what_the_limit_lets_be_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_tensors, "_STEP", 1 << 12)
    monkeypatch.setattr(equal_tensors, "_LARGEST", 1 << 13)
    size = 1 << 18
    arrays = [np.arange(size // 4, dtype=np.int32) for _ in range(3)]
    arrays[2][-20000 // 4] += 1
    on_disk = [Tensor.of(array, in_memory=0) for array in arrays]
    for tensors in (on_disk, [*map(Tensor.of, arrays)], [Tensor.of(arrays[0]), *on_disk[1:]]):
        one, other, third = EqualTensors(1 << 30).keys(tensors)
        assert one == other != third
    probes, pair = 3 * 16 * equal_tensors._PROBE, 2 * size
    limits = (0, probes - 1, probes, probes + pair, probes + 3 * size)
    found = [EqualTensors(most) for most in limits]
    assert [len(set(each.keys(on_disk))) for each in found] == [3, 3, 3, 2, 2]
    assert [len(each.uncompared) for each in found] == [3, 2, 2, 0, 0]
