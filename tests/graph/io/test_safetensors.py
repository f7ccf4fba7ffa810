"""Weights in a file that safetensors reads, too; ONNX has them as external data."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model
from tiered.graph.io.save import Storage
from tiered.testing import parse

WEIGHTS: dict[str, Any] = {
    "half": np.arange(3, dtype=np.float16),
    "bytes": np.arange(5, dtype=np.uint8),
    "wide": np.arange(2, dtype=np.float64).reshape(1, 2),
    "narrow": np.arange(4).astype(ml_dtypes.bfloat16).reshape(2, 2),
    "short": np.arange(3).astype(ml_dtypes.int4),
    "nothing": np.zeros((0, 4), np.float32),
    "__metadata__": np.ones(3, np.float32),
}


def saved(folder: Path, **storage: Any) -> Path:
    proto = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=21)
    for name, array in WEIGHTS.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        info = onnx.helper.make_tensor_value_info(f"of_{name}", kind, array.shape)
        proto.graph.node.append(onnx.helper.make_node("Identity", [name], [info.name]))
        proto.graph.output.append(info)
    path = folder / "m.onnx"
    Model.from_proto(proto).save(path, storage=Storage(external=1, safetensors=True, **storage))
    return path


def read(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Read a file as the format says: header length, header, bytes without gaps."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert not length % 8
    spans = sorted(entry["data_offsets"] for entry in header.values())
    assert spans[0][0] == 0
    assert spans[-1][1] == len(data)
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    return {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }


def test_the_file_is_one_of_safetensors(tmp_path: Path) -> None:
    path = saved(tmp_path)
    found = read(tmp_path / "m.onnx.safetensors")
    assert {name: (kind, shape) for name, (kind, shape, _) in found.items()} == {
        "wide": ("F64", [1, 2]),
        "__metadata___1": ("F32", [3]),
        "half": ("F16", [3]),
        "narrow": ("BF16", [2, 2]),
        "bytes": ("U8", [5]),
        "short": ("U8", [2]),
    }
    assert found["half"][2] == WEIGHTS["half"].tobytes()
    onnx.checker.check_model(path, full_check=True)


@pytest.mark.parametrize("share", [False, True])
def test_onnx_and_tiered_read_the_same_weights(tmp_path: Path, share: bool) -> None:
    path = saved(tmp_path)
    again = tmp_path / "again.onnx"
    Model.load(path).save(again, storage=Storage(share=share))
    assert (tmp_path / "again.onnx.data").exists() != share
    for file in (path, again):
        for tensor in onnx.load(file).graph.initializer:
            np.testing.assert_array_equal(numpy_helper.to_array(tensor), WEIGHTS[tensor.name])


def test_each_tensor_is_aligned_to_its_dtype(tmp_path: Path) -> None:
    proto = onnx.load(saved(tmp_path), load_external_data=False)
    external = [each for each in proto.graph.initializer if each.external_data]
    assert len(external) == 6
    for tensor in external:
        offset = next(int(each.value) for each in tensor.external_data if each.key == "offset")
        assert not offset % WEIGHTS[tensor.name].dtype.itemsize


def test_one_file_of_weights_takes_the_place_of_the_other(tmp_path: Path) -> None:
    path = saved(tmp_path)
    proto = onnx.load(path)
    for safetensors, name in ((False, "m.onnx.data"), (True, "m.onnx.safetensors")):
        model = Model.from_proto(proto)
        model.save(path, storage=Storage(external=1, safetensors=safetensors))
        assert sorted(each.name for each in tmp_path.iterdir()) == ["m.onnx", name]


def test_weights_of_bodies_have_names_of_their_own(tmp_path: Path) -> None:
    text = """(bool c) => (float[2] y) <float[2] w = {1,2}> { y = If(c) <
        then_branch = t () => (float[2] p) { k = Constant<value = float[2] {3,4}>() p = Add(k, w) },
        else_branch = e () => (float[2] q) { k = Constant<value = float[2] {5,6}>() q = Mul(k, w) }>
    }"""
    path = tmp_path / "m.onnx"
    Model.from_proto(parse(text)).save(path, storage=Storage(external=1, safetensors=True))
    found = {name: np.frombuffer(data, "<f4").tolist() for name, (*_, data) in
             read(tmp_path / "m.onnx.safetensors").items()}  # fmt: skip
    assert found["w"] == [1, 2]
    assert sorted(found.values()) == [[1, 2], [3, 4], [5, 6]]


def test_the_library_reads_it(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    path = saved(tmp_path)
    found = library.load_file(tmp_path / "m.onnx.safetensors")
    assert found.keys() == read(path.with_name("m.onnx.safetensors")).keys()
    np.testing.assert_array_equal(found["wide"], WEIGHTS["wide"])
