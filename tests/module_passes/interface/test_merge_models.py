from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, ModelError, UsageError, get_pass, optimize
from tiered.pipeline.interface import interface_changes
from tiered.testing import assert_unchanged, parse

PASS = "merge_models"
A = "(float[N,4] x) => (float[N,4] h, float[N,4] q) { h = Neg(x)  q = Abs(h) }"
B = "(float[M,4] h) => (float[M,4] y) <float[4] w = {5,6,7,8}> { y = Mul(h, w) }"


@pytest.fixture
def second(tmp_path: Path) -> str:
    path = tmp_path / "second.onnx"
    onnx.save(parse(B), path)
    return str(path)


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


def test_outputs_become_inputs_of_the_second_model(second: str) -> None:
    made = assert_undone(PASS, A, file=second)
    assert (names(made.graph.input), names(made.graph.output)) == (["x"], ["q", "y"])
    assert [node.op_type for node in made.graph.node] == ["Neg", "Abs", "Mul"]
    made = assert_undone(PASS, A, file=second, connect={"q": "h"}, prefix="b_", keep=True)
    assert names(made.graph.output) == ["h", "q", "b_y"]


def test_the_summary_says_that_the_interface_changed(second: str) -> None:
    model = Model.from_proto(parse(A))
    get_pass(PASS, file=second).apply(model)
    assert interface_changes(model) == ["output h removed", "output y added: float[N,4]"]


def test_a_second_run_changes_nothing(second: str) -> None:
    once = get_pass(PASS, file=second)(parse(A))
    assert_unchanged(PASS, once, because="the model has the outputs of the second", file=second)


@pytest.mark.parametrize(
    "options", [{"connect": {"h": "h"}}, {"prefix": "b_"}, {"connect": {"q": "h"}, "keep": True}]
)
def test_a_second_run_with_options_changes_nothing(second: str, options: dict[str, Any]) -> None:
    once = get_pass(PASS, file=second, **options)(parse(A))
    because = "the model has the outputs of the second"
    assert_unchanged(PASS, once, because=because, file=second, **options)


def test_an_output_of_the_same_name_is_not_taken_for_that_of_the_second(second: str) -> None:
    text = "(float[N,4] x) => (float[N,4] y) { h = Neg(x)  y = Abs(h) }"
    with pytest.raises(UsageError, match="nothing connects the models"):
        get_pass(PASS, file=second)(parse(text))
    other = "(float[N,4] h) => (float[N,4] y) <float[4] w = {5,6,7,9}> { y = Mul(h, w) }"
    with pytest.raises(ModelError, match="both models have a tensor 'y'"):
        get_pass(PASS, file=second)(parse(other))


def test_without_a_file_nothing_happens() -> None:
    assert_unchanged(PASS, A, because="no second model is given")


def test_what_does_not_fit_is_an_error(second: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no output 'z'"):
        get_pass(PASS, file=second, connect={"z": "h"})(parse(A))
    with pytest.raises(ModelError, match="both models have a tensor 'y'"):
        get_pass(PASS, file=second)(
            parse("(float[2,4] x) => (float[2,4] h, float[2,4] y) { h = Neg(x)  y = Abs(h) }")
        )
    with pytest.raises(ModelError, match="cannot read"):
        get_pass(PASS, file=str(tmp_path / "none.onnx"))(parse(A))


def test_one_output_becomes_several_inputs(tmp_path: Path) -> None:
    path = tmp_path / "two.onnx"
    onnx.save(parse("(float[N,4] p, float[N,4] k) => (float[N,4] y) { y = Sub(p, k) }"), path)
    first = parse("(float[N,4] x) => (float[N,4] h) { h = Relu(x) }")
    made = get_pass(PASS, file=str(path), connect={"h": ["p", "k"]})(first)
    assert isinstance(made, onnx.ModelProto)
    assert [list(node.input) for node in made.graph.node] == [["x"], ["h", "h"]]
    text = f"merge_models{{file={path},connect={{h: [p, k]}}}}"
    assert names(optimize(first, passes=text).graph.input) == ["x"]
