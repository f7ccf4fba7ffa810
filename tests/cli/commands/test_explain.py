"""tiered explain: why a pass fires or does not."""

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

CASTS = """(float[2] x) => (float[2] y, float16[2] z) {
    a = Cast<to = 10>(x)  b = Cast<to = 1>(a)  c = Relu(b)  y = Identity(c)  z = Identity(a) }"""


@pytest.fixture
def casts(tmp_path: Path) -> Path:
    path = tmp_path / "casts.onnx"
    onnx.save(parse(CASTS), path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("explain")


def test_each_node_has_its_verdict_and_the_first_reason(cli: Cli, casts: Path) -> None:
    ended = cli("explain", casts, "eliminate_nop_reshape")
    assert ended.out == "eliminate_nop_reshape: no node that it could rewrite\n"
    ended = cli("explain", casts, "fuse_consecutive_cast")
    assert ended.code == 0, ended.err
    head, first, second = ended.out.splitlines()
    assert head.startswith("fuse_consecutive_cast: 1 no match, 1 ")
    expected = "  Cast 'a' no match: operand 0 of Cast 'a', 'x' (float[2]), is computed"
    assert first.startswith(expected)
    assert second.startswith("  Cast 'b' ")


def test_one_node_shows_what_matched_before(cli: Cli, casts: Path) -> None:
    said = cli("explain", casts, "fuse_consecutive_cast", "--node", "a").out
    assert "\n    matched op.Cast(" in said
    assert "'b'" not in said


def test_json_has_all_of_it(cli: Cli, casts: Path) -> None:
    said = json.loads(cli("explain", casts, "fuse_consecutive_cast", "--json").out)
    assert list(said) == ["pass", "opt_level", "backend", "runs", "reason", "nodes"]
    assert (said["opt_level"], said["backend"], said["runs"]) == (2, "portable", True)
    (first, _) = said["nodes"]
    assert sorted(first) == ["matched", "node", "op_type", "reason", "verdict"]


def test_a_level_that_was_not_typed_is_the_default(cli: Cli, casts: Path) -> None:
    said = "needs opt_level 3; it is {} (-O 3 runs it)"
    assert said.format("2, the default") in cli("explain", casts, "fuse_gelu").out
    typed = cli("explain", casts, "fuse_gelu", "-O1").out
    assert said.format("1, set at the command line") in typed


def test_a_pass_without_a_pattern_is_explained_by_what_it_says(cli: Cli, casts: Path) -> None:
    found = json.loads(cli("explain", casts, "eliminate_common_subexpr", "--json").out)
    assert found["nodes"] == []
    said = cli("explain", casts, "eliminate_identity").out
    assert "Identity 'y' fires" in said


GELU = """(float[N,4] x) => (float[N,4] y) {
    d = Div(x, root)  e = Erf(d)  s = Add(e, one)  m = Mul(x, s)  y = Mul(m, half)
}"""


@pytest.fixture
def gelu(tmp_path: Path) -> Path:
    """Return the file of a GELU at opset 17, which has no Gelu yet."""
    constants = "<float root = {1.4142135}, float one = {1}, float half = {0.5}>"
    path = tmp_path / "gelu.onnx"
    onnx.save(parse(GELU.replace(" {\n", f" {constants} {{\n", 1), opset=17), path)
    return path


def test_the_verdict_is_that_of_the_level_and_the_target(cli: Cli, gelu: Path) -> None:
    at_2 = cli("explain", gelu, "fuse_gelu").out
    assert "not run by `tiered optimize -O 2`: needs opt_level 3" in at_2
    assert "(-O 3 runs it)" in at_2
    at_3 = cli("explain", gelu, "fuse_gelu", "-O3").out
    assert " fires" not in at_3
    reason = "portable does not take Gelu: ONNX has Gelu from opset 20 on; the model's opset is 17"
    assert f"declined: {reason}" in at_3
    assert "not run" not in at_3
    taken = json.loads(
        cli(
            *("explain", gelu, "fuse_gelu", "-O3", "--json"),
            *("--backend", "onnxruntime_cpu"),
        ).out
    )
    assert (taken["backend"], taken["runs"]) == ("onnxruntime_cpu", True)
    assert [node["verdict"] for node in taken["nodes"]].count("fires") == 1


@pytest.mark.parametrize("level", ["2", "3"])
@pytest.mark.parametrize("backend", ["portable", "onnxruntime_cpu"])
def test_what_fires_is_what_optimize_does(cli: Cli, gelu: Path, level: str, backend: str) -> None:
    setting = ("-O", level, "--backend", backend, "--json")
    explained = json.loads(cli("explain", gelu, "fuse_gelu", *setting).out)
    fires = [node["verdict"] for node in explained["nodes"]].count("fires")
    record = json.loads(cli("optimize", gelu, *setting).out)
    rewrites = sum(each["rewrites"] for each in record["passes"] if each["name"] == "fuse_gelu")
    assert rewrites == (fires if explained["runs"] else 0)


def test_a_pass_that_waits_to_be_asked_for_is_noted(cli: Cli, casts: Path) -> None:
    said = cli("explain", casts, "canonicalize_cast").out
    reason = "opt-in: runs only when required (--require canonicalize_cast runs it)"
    assert f"not run by `tiered optimize -O 2`: {reason}" in said


def test_a_pass_that_the_target_drops_is_noted(cli: Cli, casts: Path) -> None:
    profile = casts.with_name("npu.toml")
    profile.write_text(
        'api_version = 1\nname = "npu"\nunlisted = "standard"\n'
        '[[pipeline]]\nedit = "drop eliminate_identity"\nwhy = "a test"\n'
    )
    said = cli("explain", casts, "eliminate_identity", "--backend", profile).out
    reason = "it is not in the pipeline of npu (--passes eliminate_identity runs it)"
    assert f"not run by `tiered optimize -O 2`: {reason}" in said


def test_passes_may_run_before_and_a_scope_counts(cli: Cli, casts: Path) -> None:
    said = cli("explain", casts, "eliminate_identity@'none'").out
    assert said.count("declined: not wholly inside the scope") == 2
    after = cli("explain", casts, "eliminate_identity", "--after", "eliminate_identity").out
    assert "fires" not in after


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fuse_consecutive_cat"], "did you mean 'fuse_consecutive_cast'"),
        (["fix(eliminate_identity)"], "explain takes one pass"),
        (["fuse_consecutive_cast", "-O7"], "-O takes 0 to 4, not 7"),
        (["fuse_consecutive_cast", "--backend", "onnxruntime_gpu"], "onnxruntime_gpu"),
        (["fuse_consecutive_cast", "--node", "aa"], "there is no node 'aa'"),
        (["fuse_consecutive_cast", "--node", "c"], "does not look at Relu 'c'; it looks at Cast"),
        (["fuse_consecutive_cast", "--after", "x y"], "no pass named 'x'"),
    ],
)
def test_wrong_names_are_usage_errors(
    cli: Cli, casts: Path, arguments: list[str], message: str
) -> None:
    ended = cli("explain", casts, *arguments)
    assert ended.code == 2
    assert message in ended.err


def test_a_reason_that_concerns_the_model_names_no_node(cli: Cli, tmp_path: Path) -> None:
    proto = parse("(float[1,3,4,4] x) => (y) { y = Relu(x) }", opset=13)
    proto.ir_version = 7
    onnx.save(proto, tmp_path / "old.onnx")
    ended = cli("explain", tmp_path / "old.onnx", "alter_op_layout", "--backend", "nhwc_edge")
    assert "  the model declined: before IR 8 no NHWC functions" in ended.out
