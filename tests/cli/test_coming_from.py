"""Each command of docs/coming_from.md works, or its error says in one line what to type instead."""

import re
import shlex
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming_from.md"
ROWS = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
TEXT = "(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> { a = Identity(x) y = Add(a, w) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(parse(TEXT), tmp_path / "model.onnx")
    return tmp_path


def words(command: str) -> list[str]:
    _, *arguments = shlex.split(command)
    return ["false {}" if word == "CMD" else word for word in arguments]


def test_the_page_has_commands_of_every_tool() -> None:
    tools = {command.split()[0] for command, _ in ROWS}
    assert {"onnxsim", "onnxslim", "polygraphy", "poprt", "onnx-passes"} <= tools


@pytest.mark.parametrize(("command", "answer"), ROWS, ids=[command for command, _ in ROWS])
def test_a_command_works_or_names_what_works(
    cli: Cli, folder: Path, command: str, answer: str
) -> None:
    ended = cli(*words(command))
    if answer.startswith("the same"):
        assert (ended.code, ended.err) == (0, "")
        assert (folder / "out.onnx").exists()
        return
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    says = ("type ", "needs --verify", "the model is the first argument", "--passes", "--annotate")
    assert any(text in ended.err for text in says), ended.err
    assert not (folder / "out.onnx").exists()
    (instead,) = re.findall(r"`(tiered [^`]+)`", answer)
    ended = cli(*words(instead))
    assert ended.code == 0, ended.err


def test_the_shapes_of_verification_do_not_change_the_model(cli: Cli, folder: Path) -> None:
    ended = cli("model.onnx", "out.onnx", "--test-input-shape", "x:7,2", "--verify", "-v")
    assert ended.code == 0, ended.err
    assert "x [7,2]" in ended.out.replace(", ", ",")
    dims = onnx.load(folder / "out.onnx").graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_param == "n"


def test_several_shapes_may_follow_one_option(cli: Cli, folder: Path) -> None:
    text = "(float[n] a, float[m] b) => (float[n] y, float[m] z) { y = Neg(a) z = Neg(b) }"
    onnx.save(parse(text), folder / "model.onnx")
    for option in ("--input-shapes", "--overwrite-input-shape", "--overwrite_input_shape"):
        assert cli("model.onnx", "out.onnx", option, "a:3", "b:4").code == 0
        inputs = onnx.load(folder / "out.onnx").graph.input
        assert [v.type.tensor_type.shape.dim[0].dim_value for v in inputs] == [3, 4]


def test_optimizers_are_skipped_by_name_or_all(cli: Cli, folder: Path) -> None:
    def ops() -> list[str]:
        return [node.op_type for node in onnx.load("out.onnx").graph.node]

    assert cli("model.onnx", "out.onnx", "--skip-optimization", "eliminate_identity").code == 0
    assert ops() == ["Identity", "Add"]
    assert cli("--skip-optimization", "model.onnx", "out.onnx").code == 0
    ended = cli("model.onnx", "out.onnx", "--skip-optimization", "eliminate_idntity")
    assert (ended.code, "did you mean 'eliminate_identity'" in ended.err) == (2, True)
