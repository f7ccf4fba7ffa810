"""The verdict: what a run with verification proved, in words that mean one thing each."""

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.small import proto
from tiered import Graph, Value, op, optimize, optimize_model, rewrite, var
from tiered.support.errors import TargetError, VerificationError
from tiered.testing import parse
from tiered.verify.methods import How, VerificationMethod
from tiered.verify.verdict import Verdict, verdict_of

RANDOM = "g (float[3] x) => (float[3] y) { a = Identity(x)  y = RandomNormalLike(a) }"
DRAWN_LATE = """g (float[3] x) => (float[3] y) {
    a = Neg(x)  b = Neg(a)  c = Exp(b)  d = RandomNormalLike(c)  y = Add(c, d) }"""
STILL = "g (float[3] x) => (float[3] y) { y = Neg(x) }"
NOWHERE = "g (float[3] x) => (y) { y = zeta.Unknown(x) }"  # no runtime opens it
NO_NUMBERS = """(float[3] x) => (float[3] y) <float z = {0}> {
    a = Identity(x)  b = Mul(a, z)  c = Mul(b, b)  d = Abs(c)  e = Sub(d, d)  y = Div(e, e) }"""
PART = """g (float[3] x) => (float[3] y, float[3] z) {
    a = Identity(x)  y = RandomNormalLike(a)  z = Neg(a) }"""


def way(by: str, **more: str) -> VerificationMethod:
    return VerificationMethod("p", by, **more)  # type: ignore[arg-type]  # one of the four


def test_each_word_means_one_thing() -> None:
    assert verdict_of([]).word == "nothing to verify"
    assert verdict_of([way("sameness")]).word == "nothing to verify"
    assert verdict_of([way("sameness"), way("model")]) == Verdict("yes")
    assert verdict_of([way("region"), way("nothing", why="odd")]) == Verdict("in part", "p: odd")
    assert verdict_of([way("nothing", why="odd"), way("sameness")]) == Verdict("no", "p: odd")


def test_a_model_that_no_pass_changes_is_not_said_to_be_verified(tmp_path: Path, cli: Cli) -> None:
    for text in (STILL, NOWHERE):
        result = optimize_model(proto(text), verify=True)
        assert result.verify is not None
        assert str(result.verify.verdict) == "nothing to verify (no pass changed anything)"
        assert not result.summary.verified
    file = tmp_path / "m.onnx"
    onnx.save(proto(STILL), file)
    ended = cli("optimize", file, "--dry-run", "--verify")
    assert ended.code == 0
    assert "verified: nothing to verify (no pass changed anything)" in ended.out
    record = json.loads(cli("optimize", file, "--dry-run", "--verify", "--json").out)
    assert record["verified"] is False
    assert record["verdict"]["word"] == "nothing to verify"


def test_where_all_outputs_are_random_nothing_is_verified(tmp_path: Path, cli: Cli) -> None:
    with pytest.raises(TargetError, match=r"not verified: .*y \(not comparable: random\)"):
        optimize(proto(RANDOM), verify=True)
    file, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(proto(RANDOM), file)
    ended = cli("optimize", file, out, "--verify")
    assert (ended.code, out.exists()) == (4, False)
    assert "y (not comparable: random)" in ended.err


@pytest.mark.parametrize("how", ["each", "region", "final"])
def test_what_is_computed_before_a_draw_is_verified_by_region(how: How) -> None:
    result = optimize_model(proto(DRAWN_LATE), verify=how)
    assert result.verify is not None
    assert result.verify.verdict == Verdict("yes")
    assert {way.by for way in result.verify.ways} == {"region"}


@pytest.mark.parametrize("how", ["each", "final"])
def test_a_wrong_pass_before_a_draw_is_found(how: How) -> None:
    @rewrite(op.Neg(op.Neg(var.x)), opt_level=None)
    def wrong(graph: Graph, x: Value) -> Value:
        """Lose a sign."""
        return graph.op.Neg(x)

    with pytest.raises(VerificationError, match="wrong"):
        optimize_model(proto(DRAWN_LATE), passes=[wrong], verify=how)


def test_a_region_of_random_values_alone_is_not_said_to_be_verified() -> None:
    with pytest.raises(TargetError, match=r"not verified: .*y \(not comparable: random\)"):
        optimize(proto(RANDOM), verify="region")


def test_issue_40_where_all_outputs_are_nan_nothing_is_verified(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(parse(NO_NUMBERS), file)
    for how in ("each", "final"):
        ended = cli("optimize", file, "--dry-run", f"--verify={how}")
        assert ended.code == 4
        assert "not comparable: all its elements are NaN" in ended.err


def test_an_output_that_is_left_out_is_named(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(proto(PART), file)
    ended = cli("optimize", file, "--dry-run", "--verify")
    assert ended.code == 0
    assert "verified: yes (exact" in ended.out
    assert "y (not comparable: random)" in ended.out


def test_draws_that_are_equal_by_chance_are_random_too() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
        g (float[1] x) => (float[1] y, float[1] z, int64[1] s) {
            a = Identity(x)  b = f.coin(a)  y = Mul(b, a)  z = Neg(a)  s = Shape(b) }
        <domain: "f", opset_import: ["": 17]> coin (p) => (q) { q = Bernoulli(p) }"""
    result = optimize_model(onnx.parser.parse_model(text), verify=True)
    assert result.verified is not None
    notes = {output.name: bool(output.note) for output in result.verified[0].outputs}
    assert notes == {"y": True, "z": False, "s": False}


def test_a_dropout_draws_in_training_only() -> None:
    text = "(float[3] x) => (float[3] y) <bool t = {0}> { a = Identity(x)  y = Dropout(a) }"
    result = optimize_model(parse(text), passes=["eliminate_identity"], verify=True)
    assert result.verify is not None
    assert result.verify.verdict == Verdict("yes")
