"""The files of a model, and their digests: of what is no valid model, too."""

import hashlib
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tiered.extensions.fleet.digests import data_files, sha256_of
from tiered.support.errors import ModelError


def _saved(folder: Path, model: onnx.ModelProto) -> str:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def _model(name: str) -> onnx.ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    node = helper.make_node("Relu", ["x"], ["y"], name=name)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    return helper.make_model(helper.make_graph([node], "g", [value], [out]))


def test_a_name_does_not_make_external_data(tmp_path: Path) -> None:
    assert data_files(_saved(tmp_path, _model("location"))) == []


def test_an_operator_that_is_not_utf8_has_a_digest(tmp_path: Path) -> None:
    path = Path(_saved(tmp_path, _model("location")))
    path.write_bytes(path.read_bytes().replace(b"Relu", b"Re\xfflu"[:4]))
    assert data_files(str(path)) == []
    assert len(sha256_of(str(path))) == 64


def _external(**locations: str) -> onnx.ModelProto:
    """Return a model whose weights are in files of these names."""
    model = _model("a")
    for name, location in locations.items():
        tensor = model.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=[1])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="offset", value="0")
        tensor.external_data.add(key="location", value=location)
    return model


def test_files_in_the_folder_of_a_model_are_its_data(tmp_path: Path) -> None:
    for locations, expected in (
        ({"a": "b.bin", "b": "a.bin", "c": "b.bin"}, ["a.bin", "b.bin"]),
        ({"a": "deep/w.bin"}, ["deep/w.bin"]),
        ({"a": "../w.bin", "b": "/etc/w.bin", "c": "x/../w.bin", "d": ""}, []),
        ({"a": "..\\w.bin", "b": "w..bin"}, ["w..bin"]),
        ({}, []),
    ):
        assert data_files(_saved(tmp_path, _external(**locations))) == expected
    inside = _external(a="a.bin")
    kept = inside.graph.initializer.add(name="k", data_type=TensorProto.FLOAT, dims=[1])
    kept.raw_data = b"1234"
    kept.external_data.add(key="location", value="k.bin")
    assert data_files(_saved(tmp_path, inside)) == ["a.bin"]


def test_the_digest_of_a_model_is_that_of_all_its_files(tmp_path: Path) -> None:
    plain = _saved(tmp_path, _model("a"))
    assert sha256_of(plain) == hashlib.sha256(Path(plain).read_bytes()).hexdigest()
    path = Path(_saved(tmp_path, _external(a="a.bin", b="b.bin")))
    own = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "a.bin").write_bytes(b"1234")
    data = hashlib.sha256(b"1234").hexdigest()
    whole = hashlib.sha256(f"{own}\n{data}  a.bin\nmissing  b.bin".encode()).hexdigest()
    assert sha256_of(str(path)) == whole
    with pytest.raises(ModelError, match=r"cannot read '.*none.onnx': No such file or directory$"):
        sha256_of(str(tmp_path / "none.onnx"))
