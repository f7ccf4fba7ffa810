import json
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


def test_a_chart_that_cannot_be_written_is_an_error(cli: Cli, waves: Path) -> None:
    ended = cli("memory", waves, "--svg", waves.with_name("none") / "memory.svg")
    assert ended.code == 1
    assert "none" in ended.err
