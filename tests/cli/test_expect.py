import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered import TargetError, UsageError, optimize, optimize_model
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
    assert "portable does not take Gelu: ONNX has Gelu from opset 20 on" in ended.err


def test_a_pass_that_did_not_run_is_a_reason(cli: Cli, clips: Path) -> None:
    ended = cli("optimize", clips, "--dry-run", "-O2", "--expect", "Clip>=2")
    assert ended.code == 4
    assert "fuse_minmax_into_clip" in ended.err


def test_an_operator_that_no_pass_makes(cli: Cli, clips: Path) -> None:
    ended = cli("optimize", clips, "--dry-run", "--expect", "Hardmax>=12")
    assert "expected Hardmax>=12, found 0 (no pass of the pipeline makes it)" in ended.err


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("Transposse<5", "did you mean 'Transpose'?"),
        ("Attension>=12", "did you mean 'Attention'?"),
        ("node<=5", "did you mean 'nodes'?"),
        ("com.microsoft::BiasGellu==0", "did you mean 'com.microsoft::BiasGelu'?"),
        ("com.microsft::BiasGelu<4", "did you mean 'com.microsoft::BiasGelu'?"),
        ("com.microsoft.BiasGelu==0", "did you mean 'com.microsoft::BiasGelu'?"),
        ("BiasGelu==0", "did you mean 'com.microsoft::BiasGelu'?"),
        ("zeta::GateLinear==0", "no operator 'zeta::GateLinear'"),
        ("nodes", "nodes<=500"),
        ("nodes<=1MB", "'1MB' is no number"),
        ("bytes<=1XB", "is not"),
    ],
)
def test_a_name_that_does_not_exist_is_a_usage_error(
    cli: Cli, clips: Path, entry: str, hint: str
) -> None:
    out = clips.with_name("out.onnx")
    ended = cli("optimize", clips, out, "--expect", entry)
    assert ended.code == 2
    assert hint in ended.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("nodes<=5", 0),
        ("nodes<5", 4),
        ("parameters==2", 0),
        ("parameters>2", 4),
        ("bytes<1MB", 0),
        ("bytes>=1KiB", 4),
        ("ai.onnx::Sin==1", 0),
        ("zeta::GateLinear<=1", 0),
        ("zeta::GateLinear>=1", 4),
    ],
)
def test_totals_and_domains_can_be_expected(cli: Cli, clips: Path, entry: str, code: int) -> None:
    if "zeta" in entry:
        text = "(float[2] x) => (float[2] y) { y = zeta.GateLinear(x) }"
        text = text if code == 0 else text.replace("zeta.GateLinear", "Relu")
        onnx.save(parse(text), clips)
    ended = cli("optimize", clips, "--dry-run", "--expect", entry)
    assert ended.code == code, ended.err
    if code == 4:
        assert f"expected {entry.replace('1KiB', '1024')}, found" in ended.err


def test_the_same_operator_of_another_domain_is_reported(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "gelu.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }"), path)
    ended = cli("optimize", path, "--dry-run", "--expect", "Gelu>=1")
    assert (ended.code, "found 0, and com.microsoft::Gelu 1" in ended.err) == (4, True), ended.err


def test_python_can_expect_too(clips: Path) -> None:
    out = clips.with_name("out.onnx")
    with pytest.raises(TargetError, match="expected Clip>=3, found 2"):
        optimize(clips, out, opt_level=3, expect=["Clip>=3"])
    with pytest.raises(UsageError, match="did you mean 'Clip'"):
        optimize(clips, out, expect=["Clipp<3"])
    with pytest.raises(UsageError, match="takes a list"):
        optimize(clips, out, expect="Clip>=2")
    assert not out.exists()
    assert optimize_model(clips, opt_level=3, expect=["Clip==2", "nodes<=9"]).after.nodes <= 9
    optimize(clips, out, opt_level=3, expect=("Clip>=2",))
    assert out.exists()


def test_the_summary_counts_what_was_fused(cli: Cli, clips: Path) -> None:
    assert "fused: Clip 2\n" in cli("optimize", clips, "--dry-run", "-O3").out
    assert "fused:" not in cli("optimize", clips, "--dry-run", "-O2").out
    ended = cli("optimize", clips, "--dry-run", "-O3", "--json")
    assert json.loads(ended.out)["fused"] == {"Clip": 2}


@pytest.mark.parametrize("entries", [5, "nodes<=5", None])
def test_what_is_no_list_is_a_usage_error_in_python(entries: object) -> None:
    with pytest.raises(UsageError, match="expect takes a list of texts"):
        optimize_model(parse(CLIPS), expect=entries)  # type: ignore[arg-type]  # the point
