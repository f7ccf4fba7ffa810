import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

TEXT = """(float[N,4] x) => (float[N,4] y, float[N,4] q)
    <float[4] w = {1,2,3,4}> { a = Add(x, w)  b = Relu(a)  y = Exp(b)  q = Neg(a) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_a_part_is_written_and_the_interface_change_printed(cli: Cli, model: Path) -> None:
    out = model.with_name("part.onnx")
    ended = cli("extract", model, out, "--from", "a", "--to", "y", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "(from a to y, " in ended.out
    assert "input x removed" in ended.out
    assert "input a added: float[N,4]" in ended.out
    assert "verified: yes (exact" in ended.out
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Relu", "Exp"]


def test_several_names_and_json(cli: Cli, model: Path) -> None:
    ended = cli("extract", model, "--to", "q,b", "--json")
    assert ended.code == 0
    assert "output b added: float[N,4]" in json.loads(ended.out)["interface"]
    ended = cli("extract", model, "--to", "b", "--to", "q", "--json")
    assert "output b added: float[N,4]" in json.loads(ended.out)["interface"]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "nothing to extract: type --from TENSOR, --to TENSOR, or both"),
        (("--to", "bb"), "the main graph has no tensor 'bb'; did you mean 'b'"),
        (("--from", "w"), "'w' is a weight"),
    ],
)
def test_wrong_names_are_usage_errors(
    cli: Cli, model: Path, tokens: tuple[str, ...], message: str
) -> None:
    out = model.with_name("part.onnx")
    ended = cli("extract", model, out, *tokens)
    assert ended.code == 2
    assert message in ended.err
    assert not out.exists()


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("extract")
