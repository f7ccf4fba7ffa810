"""The files of a model, and their digests: of what is no valid model, too."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from tiered.extensions.fleet.digests import data_files, sha256_of


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
