"""extract_model: a part of a model by the names of tensors."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tiered import UsageError
from tiered.debug import extract_model
from tiered.runtime import Session
from tiered.testing import parse

TEXT = """(float[N,4] x, float[4] z) => (float[N,2] y, float[N,4] q)
    <float[4,4] w = {1,0,0,0, 0,2,0,0, 0,0,3,0, 0,0,0,4}, float[4,2] v = {1,1,1,1,1,1,1,1}> {
    a = MatMul(x, w)  b = Relu(a)  c = Add(b, z)  y = MatMul(c, v)  q = Neg(a) }"""


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


def test_what_an_output_needs_and_no_more_is_taken() -> None:
    made = extract_model(parse(TEXT), ["b"])
    assert [node.op_type for node in made.graph.node] == ["MatMul", "Relu"]
    assert (names(made.graph.input), names(made.graph.output)) == (["x"], ["b"])
    assert names(made.graph.initializer) == ["w"]
    onnx.checker.check_model(made, full_check=True)


def test_tensors_inside_become_inputs_with_their_types() -> None:
    whole = parse(TEXT)
    made = extract_model(whole, ["y"], ["b"])
    assert [node.op_type for node in made.graph.node] == ["Add", "MatMul"]
    assert names(made.graph.input) == ["b", "z"]
    dims = made.graph.input[0].type.tensor_type.shape.dim
    assert (dims[0].dim_param, dims[1].dim_value) == ("N", 4)
    x, z = np.array([[1, -1, 2, -2]], np.float32), np.array([0.5, 1, 1.5, 2], np.float32)
    inner = extract_model(whole, ["b"])
    b = Session(inner).run({"x": x})["b"]
    expected = Session(whole).run({"x": x, "z": z})["y"]
    np.testing.assert_array_equal(Session(made).run({"b": b, "z": z})["y"], expected)


def test_a_file_is_read_and_several_outputs_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    made = extract_model(path, ["q", "c"], ["a"])
    assert names(made.graph.output) == ["q", "c"]
    assert names(made.graph.input) == ["a", "z"]


@pytest.mark.parametrize(
    ("outputs", "inputs", "message"),
    [
        (["yy"], [], "no tensor 'yy'; did you mean 'y'"),
        (["w"], [], "'w' is a weight"),
        (["q"], ["b"], "'q' can be computed without 'b'"),
        ([], [], "at least one output"),
    ],
)
def test_wrong_names_are_errors(outputs: list[str], inputs: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        extract_model(parse(TEXT), outputs, inputs)
