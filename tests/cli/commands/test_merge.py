import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

A = "(float[N,4] x) => (float[N,4] h) <float[4] w = {1,2,3,4}> { h = Add(x, w) }"
B = """(float[M,4] h, float[4] z) => (float[M,4] y) <float[4] w = {5,6,7,8}> {
    t = Mul(h, w)  y = Add(t, z) }"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, text in zip(paths, (A, B), strict=True):
        onnx.save(parse(text), path)
    return paths


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("merge")


def test_two_models_become_one_that_is_verified(cli: Cli, files: tuple[Path, Path]) -> None:
    out = files[0].with_name("out.onnx")
    ended = cli("merge", *files, out, "--map", "h=h", "--prefix", "b_", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "inputs: x: float[N,4], b_z: float[4]\noutputs: b_y: float[N,4]\n" in ended.out
    assert "verified: yes (exact" in ended.out
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    assert [tensor.name for tensor in made.graph.initializer] == ["w", "b_w"]


def test_the_json_has_the_interface(cli: Cli, files: tuple[Path, Path]) -> None:
    ended = cli("merge", *files, "--json", "--keep")
    record = json.loads(ended.out)
    assert list(record["outputs"]) == ["h", "y"]
    assert (record["nodes"], record["output"], record["verified"]) == (3, None, False)


C = "(float[M,4] y, float[N,4] h) => (float[M,4] e) { e = Exp(y) u = Neg(h) }"


@pytest.mark.parametrize("how", ["last", "-o"])
def test_three_models_become_one_in_one_command(
    cli: Cli, files: tuple[Path, Path], how: str
) -> None:
    third, out = files[0].with_name("c.onnx"), files[0].with_name("out.onnx")
    onnx.save(parse(C), third)
    onnx.save(parse(A.replace("h", "g")), files[0].with_name("g.onnx"))
    target = (out,) if how == "last" else ("-o", out)
    ended = cli("merge", *files, third, *target, "--verify", "--keep")
    assert (ended.code, ended.err) == (0, "")
    assert "b.onnx + " in ended.out
    assert "verified: yes (exact; the models ran one after the other)" in ended.out
    assert [info.name for info in onnx.load(out).graph.output] == ["h", "y", "e"]


def test_names_are_for_two_models(cli: Cli, files: tuple[Path, Path]) -> None:
    out = files[0].with_name("out.onnx")
    ended = cli("merge", *files, files[0], out, "--map", "h=h")
    assert ended.code == 2
    assert "--map OUT=IN and --prefix are for two models" in ended.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("tokens", "code", "message"),
    [
        (("--map", "h"), 2, "--map takes OUT=IN, or names alone, not 'h'"),
        (("--map", "h=h", "--map", "h=h"), 2, "--map: 'h=h' is given twice"),
        (("--map", "h=h", "--map", "names"), 2, "or names alone, not 'names'"),
        (("--map", "hh=h"), 2, "no output 'hh'; did you mean 'h'"),
        (("--map", "h=z"), 1, "it cannot be input 'z'"),
    ],
)
def test_models_that_do_not_fit_are_errors(
    cli: Cli, files: tuple[Path, Path], tokens: tuple[str, ...], code: int, message: str
) -> None:
    out = files[0].with_name("out.onnx")
    ended = cli("merge", *files, out, *tokens)
    assert ended.code == code
    assert message in ended.err
    assert not out.exists()


def test_a_model_that_is_read_is_not_replaced(cli: Cli, files: tuple[Path, Path]) -> None:
    assert cli("merge", *files, files[1]).code == 2


def test_one_output_becomes_several_inputs(cli: Cli, tmp_path: Path) -> None:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "out.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"), paths[0])
    onnx.save(
        parse("(float[2] p, float[2] q, float[2] r) => (float[2] z, float[2] q2) {"
              " s = Sub(p, q)  z = Add(s, r)  q2 = Abs(q) }"), paths[1],
    )  # fmt: skip
    ended = cli("merge", *paths, "--map", "y=p", "--map", "y=q", "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "inputs: x: float[2], r: float[2]\noutputs: z: float[2], q2: float[2]\n" in ended.out
    nodes = {node.op_type: list(node.input) for node in onnx.load(paths[2]).graph.node}
    assert nodes["Sub"] == ["y", "y"]
    assert nodes["Abs"] == ["y"]


def test_the_summary_has_the_dims_of_the_file(cli: Cli, tmp_path: Path) -> None:
    paths = tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "out.onnx"
    onnx.save(parse("(float[n,4] x) => (float[n,4] h) { h = Neg(x) }"), paths[0])
    onnx.save(parse("(float[2,4] h) => (float[2,4] y) { y = Abs(h) }"), paths[1])
    ended = cli("merge", *paths, "--verify")
    assert (ended.code, ended.err) == (0, "")
    assert "inputs: x: float[2,4]\noutputs: y: float[2,4]\n" in ended.out
    made = onnx.load(paths[2]).graph
    shapes = [info.type.tensor_type.shape for info in (*made.input, *made.output)]
    assert [[dim.dim_value for dim in shape.dim] for shape in shapes] == [[2, 4], [2, 4]]
