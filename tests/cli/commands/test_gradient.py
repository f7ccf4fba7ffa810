import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

TEXT = """(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12},
    float[4] b = {1,2,3,4}> { h = MatMul(x, w)  s = Add(h, b)  y = Tanh(s) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_gradients_are_written_and_named_as_a_change_of_the_interface(
    cli: Cli, model: Path
) -> None:
    out = model.parent / "out.onnx"
    ended = cli("gradient", model, out, "--wrt", "w,x", "--seed", "input", "--verify")
    assert ended.code == 0
    assert "outputs grad/w, grad/x not compared: the model before has no such tensor" in ended.err
    made = onnx.load(out)
    assert [info.name for info in made.graph.output] == ["y", "grad/w", "grad/x"]
    assert [info.name for info in made.graph.input] == ["x", "seed/y"]
    assert "grad/w" in ended.out


def test_an_output_of_several_elements_needs_a_seed(cli: Cli, model: Path) -> None:
    ended = cli("gradient", model, model.parent / "out.onnx")
    assert ended.code == 2
    assert "expected a single number; seed=ones" in ended.err
    assert not (model.parent / "out.onnx").exists()


def test_tensors_are_computed_again_and_some_stay(cli: Cli, model: Path) -> None:
    layers = " ".join(f"h{at} = MatMul(t{at}, w)  t{at + 1} = Tanh(h{at})" for at in range(9))
    text = f"""(float[8,2] t0) => (float[8,2] t9) <float[2,2] w = {{1,2,3,4}}> {{ {layers} }}"""
    onnx.save(parse(text), model)
    made = []
    for more in ((), ("--recompute",), ("--recompute", "--stay", "t3,t6")):
        out = model.parent / "out.onnx"
        ended = cli("gradient", model, out, "--seed", "input", "--force", "--verify", *more)
        assert ended.code == 0
        made.append([node.op_type for node in onnx.load(out).graph.node].count("Tanh"))
    # Between t3 and t6, and before, two Tanh each.
    assert made[0] == 9 < made[1] < 18
    assert made[2] == 9 + 4


def test_sensitivity_lists_matrices_by_their_effect(cli: Cli, model: Path) -> None:
    ended = cli("sensitivity", model, "--json")
    (row,) = json.loads(ended.out)["weights"]
    assert (row["name"], row["op_type"], row["shape"], row["share"]) == ("w", "MatMul", [3, 4], 1)
    assert row["gradient"] > 0
    named = json.loads(cli("sensitivity", model, "--json", "--weights", "*").out)["weights"]
    assert {row["name"] for row in named} == {"w", "b"}
    assert named[0]["effect"] >= named[1]["effect"]


def test_sensitivity_prints_a_table(cli: Cli, model: Path) -> None:
    ended = cli("sensitivity", model)
    assert ended.code == 0
    assert "Weights by effect" in ended.out
    assert "3x4" in ended.out


def test_a_model_without_float_weights_is_an_error(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plain.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"), path)
    ended = cli("sensitivity", path)
    assert ended.code == 2
    assert "1 float output and 0 float weights" in ended.err


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("gradient")
