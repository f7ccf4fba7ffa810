import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

CLIPS = """(float[2] x) => (float[2] y) <float l = {-1}, float h = {1}>
{ a = Max(x, l) b = Min(a, h) c = Sin(b) d = Max(c, l) y = Min(d, h) }"""
ERF = """(float[2] x) => (float[2] y) <float r = {1.41421356}, float o = {1}, float h = {0.5}>
{ a = Div(x, r) b = Erf(a) c = Add(b, o) d = Mul(x, c) y = Mul(d, h) }"""


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    path = tmp_path / "clips.onnx"
    onnx.save(parse(CLIPS), path)
    return path


@pytest.mark.parametrize("entry", ["Clip", "Clip>=2", "Clip >= 1", "Clip==2", "Clip<3", "Min=0"])
def test_an_expectation_that_holds_changes_nothing(cli: Cli, clips: Path, entry: str) -> None:
    out = clips.with_name("out.onnx")
    ended = cli("optimize", clips, out, "-O3", "--expect", entry)
    assert (ended.code, ended.err) == (0, "")
    assert out.exists()


@pytest.mark.parametrize("entry", ["Clip>=3", "Clip<2", "Clip>2", "Min>=1"])
def test_an_expectation_that_does_not_hold_is_an_error_and_nothing_is_written(
    cli: Cli, clips: Path, entry: str
) -> None:
    out = clips.with_name("out.onnx")
    ended = cli("optimize", clips, out, "-O3", "--expect", f"Sin, {entry}")
    assert ended.code == 4
    assert f"expected {entry}, found" in ended.err
    assert not out.exists()


def test_it_says_why_a_fusion_did_not_happen(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "gelu.onnx"
    onnx.save(parse(ERF, opset=17), path)
    ended = cli("optimize", path, "--dry-run", "-O3", "--expect", "Gelu>=1")
    assert ended.code == 4
    assert "expected Gelu>=1, found 0 (fuse_gelu: " in ended.err
    assert "portable does not take Gelu: the target has no such operator" in ended.err


def test_a_pass_that_did_not_run_is_a_reason(cli: Cli, clips: Path) -> None:
    ended = cli("optimize", clips, "--dry-run", "-O2", "--expect", "Clip>=2")
    assert ended.code == 4
    assert "fuse_minmax_into_clip" in ended.err


def test_an_operator_that_no_pass_makes(cli: Cli, clips: Path) -> None:
    ended = cli("optimize", clips, "--dry-run", "--expect", "Attension>=12")
    assert "expected Attension>=12, found 0 (no pass of the pipeline makes it)" in ended.err


@pytest.mark.parametrize("entry", ["", "Clip>=", "12", "Clip>=many"])
def test_what_is_no_expectation_is_a_usage_error(cli: Cli, clips: Path, entry: str) -> None:
    ended = cli("optimize", clips, "--dry-run", "--expect", entry)
    assert ended.code == 2
    assert "--expect" in ended.err


def test_the_summary_counts_what_was_fused(cli: Cli, clips: Path) -> None:
    assert "fused: Clip 2\n" in cli("optimize", clips, "--dry-run", "-O3").out
    assert "fused:" not in cli("optimize", clips, "--dry-run", "-O2").out
    ended = cli("optimize", clips, "--dry-run", "-O3", "--json")
    assert json.loads(ended.out)["fused"] == {"Clip": 2}
