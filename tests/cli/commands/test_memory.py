import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

TEXT = "(float[N,4] x) => (float[N,4] y) { a = Sin(x) b = Cos(x) y = Add(a, b) }"


@pytest.fixture
def waves(tmp_path: Path) -> Path:
    path = tmp_path / "waves.onnx"
    onnx.save(parse(TEXT), path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("memory")


def test_the_peak_and_what_is_alive_there_are_printed(cli: Cli, waves: Path) -> None:
    ended = cli("memory", waves, "--dim", "N=2")
    assert (ended.code, ended.err) == (0, "")
    assert "tensors at the peak: 96 B\n" in ended.out
    assert "at the node b (Cos), 2 of 3" in ended.out
    assert "Alive at the peak" in ended.out
    assert "dynamic dims" not in ended.out


def test_dynamic_dims_are_named(cli: Cli, waves: Path) -> None:
    assert "dynamic dims counted as 16: N; --dim NAME=SIZE sets one" in cli("memory", waves).out
    assert "counted as 3: N" in cli("memory", waves, "--default-dim", "3").out


def test_the_bytes_at_the_peak_are_a_polynomial_in_dynamic_dims(cli: Cli, waves: Path) -> None:
    assert "bytes there: 48*N\n" in cli("memory", waves).out
    assert json.loads(cli("memory", waves, "--json").out)["formula"] == "48*N"
    assert "bytes there" not in cli("memory", waves, "--dim", "N=2").out


def test_json_has_the_plan(cli: Cli, waves: Path) -> None:
    ended = cli("memory", waves, "--json", "--no-in-place", "--dim", "N=1")
    record = json.loads(ended.out)
    assert (record["peak"], record["peak_at"]) == (64, 2)
    assert record["steps"][0] == {"node": "a", "op_type": "Sin", "nbytes": 32}
    assert record["lifetimes"][0] == {"name": "x", "nbytes": 16, "first": -1, "last": 3}


def test_the_curve_is_written(cli: Cli, waves: Path) -> None:
    chart = waves.with_name("memory.svg")
    assert cli("memory", waves, "--svg", chart).code == 0
    text = chart.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "waves.onnx: bytes alive at each node" in text


def test_tensors_inside_of_local_functions_count(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "calls.onnx"
    calls = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        main (float[N,4] x) => (float[N,4] y) { y = own.Large(x) }
        <domain: "own", opset_import: ["" : 21]>
        Large (a) => (b) { z = Concat<axis=0>(a, a, a)  n = Size(z)  f = CastLike(n, a)
            b = Mul(a, f) }"""
    )
    onnx.save(calls, path)
    ended = cli("memory", path, "--dim", "N=8", "--no-in-place")
    assert (ended.code, ended.err) == (0, "")
    # x and three of it, then the size.
    assert f"tensors at the peak: {4 * 8 * 4 * 4 + 8} B\n" in ended.out


def test_a_chart_never_replaces_the_model(cli: Cli, waves: Path) -> None:
    before = waves.read_bytes()
    ended = cli("memory", waves, "--svg", waves)
    assert (ended.code, waves.read_bytes()) == (2, before)
    assert "is the model that is read" in ended.err


def test_a_model_with_bodies_is_planned_and_drawn(cli: Cli, tmp_path: Path) -> None:
    path, chart = tmp_path / "bodies.onnx", tmp_path / "bodies.svg"
    text = """(float[4] x, bool c) => (float[4] y) {
        a = Sin(x)
        y = If(c) <
            then_branch = t () => (float[4] p) { b = Cos(a) d = Concat<axis=0>(a, b)
                e = Exp(d) n = ReduceSum<keepdims=0>(e) p = Add(b, n) },
            else_branch = e () => (float[4] q) { q = Identity(a) }> }"""
    onnx.save(parse(text), path)
    ended = cli("memory", path, "--svg", chart)
    assert "at the node y (If), 2 of 2" in ended.out or "(If), 2 of 2" in ended.out
    assert chart.read_text(encoding="utf-8").startswith("<svg")


def test_a_chart_that_cannot_be_written_is_an_error(cli: Cli, waves: Path) -> None:
    ended = cli("memory", waves, "--svg", waves.with_name("none") / "memory.svg")
    assert ended.code == 1
    assert "none" in ended.err


def test_values_with_unknown_dims_are_counted(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "unknown.onnx"
    onnx.save(parse("(float[N,4] x) => (int64[2,M] y) { n = NonZero(x) y = Neg(n) }"), path)
    assert "values with unknown dims, counted as 16 each: 2" in cli("memory", path).out
    found = json.loads(cli("memory", path, "--json").out)
    assert found["guessed"] == ["n", "y"]
