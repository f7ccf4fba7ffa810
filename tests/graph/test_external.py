"""Weights in files of their own: which files are read at all, and that every bit is kept."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.small import proto
from tiered import Model, ModelError, get_pass, optimize
from tiered.graph.core.dtypes import bits_of
from tiered.graph.io import protobuf_scan
from tiered.graph.io.save import Storage
from tiered.runtime import run_reference
from tiered.testing import parse

DTYPES = [
    dtype
    for dtype in TensorProto.DataType.values()
    if dtype not in (TensorProto.UNDEFINED, TensorProto.STRING)
]


def _refers_to(location: str) -> onnx.ModelProto:
    """Return a model that folding makes read a file of weights."""
    made = proto("g (float[2] x) => (float[2] y) { a = Neg(w)  y = Add(x, a) }")
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return made


def _outside(folder: Path) -> str:
    return "../secret.bin"


def _absolute(folder: Path) -> str:
    return str(folder.parent / "secret.bin")


def _through_a_folder(folder: Path) -> str:
    (folder / "sub").mkdir()
    return "sub/../../secret.bin"


def _link(folder: Path) -> str:
    os.symlink("../secret.bin", folder / "link.bin")
    return "link.bin"


def _linked_folder(folder: Path) -> str:
    os.symlink("..", folder / "up")
    return "up/secret.bin"


def _folder(folder: Path) -> str:
    (folder / "sub").mkdir()
    return "sub"


@pytest.mark.parametrize(
    "place", [_outside, _absolute, _through_a_folder, _link, _linked_folder, _folder]
)
def test_only_a_plain_file_inside_the_folder_is_read(
    tmp_path: Path, place: Callable[[Path], str]
) -> None:
    (tmp_path / "secret.bin").write_bytes(b"whatever")
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(_refers_to(place(folder)), folder / "m.onnx")
    found = sorted(folder.rglob("*"))
    for level in (0, 2):
        with pytest.raises(ModelError, match="'w'"):
            optimize(folder / "m.onnx", folder / "out.onnx", opt_level=level)
    assert sorted(folder.rglob("*")) == found


def _filled(dtype: int) -> onnx.TensorProto:
    """Return a tensor of 5 rows of 3 whose bytes are all different."""
    nbytes = -(-15 * bits_of(dtype) // 8)
    raw = bytes(range(7, 7 + nbytes)) if dtype != TensorProto.BOOL else b"\1\0\1" * 5
    return TensorProto(name="w", data_type=dtype, dims=[5, 3], raw_data=raw)


def _with(dtype: int) -> onnx.ModelProto:
    info = helper.make_tensor_value_info("y", dtype, [5, 3])
    made = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [info])
    made.initializer.append(_filled(dtype))
    strings = numpy_helper.from_array(np.array(["a", "é"], object), "text")
    made.initializer.append(strings)
    made.output.append(helper.make_tensor_value_info("text", TensorProto.STRING, [2]))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


@pytest.mark.parametrize("dtype", DTYPES, ids=TensorProto.DataType.Name)
def test_every_dtype_survives_every_storage(
    tmp_path: Path, dtype: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protobuf_scan, "SCANNED", 0)
    monkeypatch.setattr(protobuf_scan, "_LARGE", 1)
    onnx.save(_with(dtype), tmp_path / "m.onnx")
    Model.load(tmp_path / "m.onnx").save(tmp_path / "apart.onnx", storage=Storage(external=1))
    Model.load(tmp_path / "apart.onnx").save(tmp_path / "moved.onnx")
    Model.load(tmp_path / "moved.onnx").save(tmp_path / "whole.onnx", storage=Storage(single=True))
    assert (tmp_path / "apart.onnx.data").stat().st_size == len(_filled(dtype).raw_data)
    for name in ("apart", "moved", "whole"):
        read = onnx.load(tmp_path / f"{name}.onnx")
        tensor, text = read.graph.initializer
        assert (tensor.raw_data, tensor.data_type) == (_filled(dtype).raw_data, dtype)
        assert list(text.string_data) == [b"a", "é".encode()]
    assert not (tmp_path / "whole.onnx.data").exists()


def _open_files(folder: Path) -> list[str]:
    """Return the open files of a folder; descriptors of others come and go."""
    found = []
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{entry}"))
    return [path for path in found if path.startswith(str(folder))]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="only Linux lists its descriptors")
def test_small_tensors_keep_no_file_open(tmp_path: Path) -> None:
    made = proto("g (float[2] x) => (float[2] y) { y = Sum(x, w0, w1, w2, w3) }")
    weights = [numpy_helper.from_array(np.full(2, i, np.float32), f"w{i}") for i in range(4)]
    made.graph.initializer.extend(weights)
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    tensors = [value.tensor for value in Model.load(tmp_path / "m.onnx").main.initializers]
    arrays = [tensor.numpy() for tensor in tensors if tensor is not None]
    assert _open_files(tmp_path) == []
    assert [(array.tolist(), array.flags.writeable) for array in arrays] == [
        ([float(i)] * 2, False) for i in range(4)
    ]


def test_a_sparse_tensor_stays_in_the_model(tmp_path: Path) -> None:
    made = proto("g (float[3] x) => (float[3] y) { y = Add(x, w) }")
    values = numpy_helper.from_array(np.array([5.0], np.float32), "w")
    indices = numpy_helper.from_array(np.array([1], np.int64))
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    onnx.save(made, tmp_path / "m.onnx")
    Model.load(tmp_path / "m.onnx").save(tmp_path / "apart.onnx", storage=Storage(external=1))
    read = onnx.load(tmp_path / "apart.onnx")
    assert read.graph.sparse_initializer == made.graph.sparse_initializer


@pytest.mark.parametrize(
    "dtype",
    [each for each in DTYPES if "COMPLEX" not in TensorProto.DataType.Name(each)],
    ids=TensorProto.DataType.Name,
)
def test_constants_of_every_number_pass_every_level(dtype: int) -> None:
    tensor = helper.make_tensor("c", dtype, [3], [1, 1, 1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    node = helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)
    graph = helper.make_graph([node], "g", [], [y], [tensor])
    opset = helper.make_opsetid("", onnx.defs.onnx_opset_version())
    model = helper.make_model(graph, opset_imports=[opset])
    for level in range(5):
        result = optimize(model, opt_level=level)
        onnx.checker.check_model(result, full_check=True)
        assert run_reference(result, {})["y"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["float_to_half", "fold_constant"])
@pytest.mark.parametrize("way", ["once", "copied"])
def test_weights_stay_outside_where_all_of_them_are_rewritten(
    tmp_path: Path, name: str, way: str
) -> None:
    """In the model file, those of a large model would be more than protobuf allows."""
    text = "(float[N,512] x) => (float[N,1024] y) { t = Transpose(w) y = MatMul(x, t) }"
    proto = parse(text)
    weight = np.random.default_rng(0).standard_normal((1024, 512)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(proto, tmp_path / "in.onnx", save_as_external_data=True, location="in.bin")
    model = Model.load(tmp_path / "in.onnx")
    get_pass(name).apply(model)
    if way == "copied":
        model = model.copy()
    model.save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx").stat().st_size < 10_000
    assert (tmp_path / "out.onnx.data").stat().st_size >= 1 << 20
    onnx.checker.check_model(str(tmp_path / "out.onnx"))
