from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, ModelError


def external_model(folder: Path) -> Path:
    weight = np.arange(4096, dtype=np.float32)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]>'
        " g (float[4096] x) => (float[4096] y) { y = Add(x, x) }"
    )
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    proto.graph.node[0].input[1] = "w"
    path = folder / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="out.onnx.data", size_threshold=0)
    return path


def test_weights_are_never_written_over_the_file_they_are_read_from(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    before = (tmp_path / "out.onnx.data").read_bytes()
    with pytest.raises(ModelError, match="has weights of the model itself"):
        Model.load(path).save(tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").read_bytes() == before
    assert not (tmp_path / "out.onnx").exists()


def test_external_weights_are_copied_to_a_file_beside_the_result(tmp_path: Path) -> None:
    Model.load(external_model(tmp_path)).save(tmp_path / "other.onnx")
    saved = onnx.load(tmp_path / "other.onnx")
    array = numpy_helper.to_array(saved.graph.initializer[0])
    assert np.array_equal(array, np.arange(4096, dtype=np.float32))
