"""tiered explain: why a pass fires or does not."""

import json
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
    (first, _) = json.loads(cli("explain", casts, "fuse_consecutive_cast", "--json").out)
    assert sorted(first) == ["matched", "node", "op_type", "reason", "verdict"]


def test_a_pass_without_a_pattern_is_explained_by_what_it_says(cli: Cli, casts: Path) -> None:
    (found,) = json.loads(cli("explain", casts, "eliminate_common_subexpr", "--json").out) or [{}]
    assert found == {}
    said = cli("explain", casts, "eliminate_identity").out
    assert "Identity 'y' fires" in said


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
