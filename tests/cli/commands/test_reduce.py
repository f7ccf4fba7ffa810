import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

TEXT = """(float[4] x) => (float[4] y) {
    a = Neg(x)  b = Abs(a)  c = Exp(b)  d = Relu(c)  y = Neg(d) }"""


@pytest.fixture
def check(tmp_path: Path) -> str:
    """Return a command that ends with 7 on a model that has an Exp."""
    script = tmp_path / "check.py"
    script.write_text(
        "import sys\nsys.exit(7 if b'Exp' in open(sys.argv[1], 'rb').read() else 0)\n"
    )
    return f"{sys.executable} -S {script} {{}}"


def test_a_smaller_model_that_fails_alike_is_written(cli: Cli, tmp_path: Path, check: str) -> None:
    given, out = tmp_path / "m.onnx", tmp_path / "small.onnx"
    onnx.save(parse(TEXT), given)
    ended = cli("reduce", given, out, "--check", check)
    assert ended.code == 0
    assert "1 of 5 nodes" in ended.out
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Exp"]
    assert "still fails" in ended.err


def test_a_command_that_does_not_fail_is_a_usage_error(
    cli: Cli, tmp_path: Path, check: str
) -> None:
    given = tmp_path / "m.onnx"
    onnx.save(parse("(float[4] x) => (float[4] y) { y = Neg(x) }"), given)
    ended = cli("reduce", given, tmp_path / "small.onnx", "--check", check)
    assert ended.code == 2
    assert "does not fail" in ended.err
    assert cli("reduce", given, tmp_path / "s.onnx", "--check", "no-such-command").code == 2


def test_the_model_that_is_read_is_not_written(cli: Cli, tmp_path: Path, check: str) -> None:
    given = tmp_path / "m.onnx"
    onnx.save(parse(TEXT), given)
    assert cli("reduce", given, given, "--check", check).code == 2


def test_another_model_is_replaced_only_by_force(cli: Cli, tmp_path: Path, check: str) -> None:
    given, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    onnx.save(parse(TEXT), given)
    onnx.save(parse("(float[4] x) => (float[4] y) { y = Abs(x) }"), other)
    kept = other.read_bytes()
    ended = cli("reduce", given, other, "--check", check)
    assert (ended.code, other.read_bytes()) == (2, kept)
    assert "use --force to replace it\n" in ended.err
    assert cli("reduce", given, other, "--check", check, "--force").code == 0
