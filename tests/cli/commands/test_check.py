import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

NPU = """
api_version = 1
name = "npu"
doc = "A chip that adds"
sources = ["its manual"]
[operators]
Add = true
[[pipeline]]
edit = "drop eliminate_zero_bias"
why = "it has no convolutions"
"""


@pytest.fixture
def npu(tmp_path: Path) -> Path:
    path = tmp_path / "npu.toml"
    path.write_text(NPU)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("check")


def test_a_target_that_takes_what_the_passes_leave_is_met(cli: Cli, small: Path, npu: Path) -> None:
    ended = cli("check", small, "--backend", npu)
    assert (ended.code, ended.err) == (0, "")
    assert "as it is:                   1 of 3 nodes taken (33%)" in ended.out
    assert "after the passes of -O2:    1 of 1 node taken (100%)" in ended.out
    assert "eliminate_identity   Identity" in ended.out
    assert "npu takes the model" in ended.out


def test_a_target_that_cannot_be_met_is_exit_code_4(cli: Cli, small: Path, npu: Path) -> None:
    ended = cli("check", small, "--backend", npu, "--edit", "drop eliminate_identity")
    assert ended.code == 4
    assert "Remaining" in ended.out
    assert "npu does not take the model: Identity (2)" in ended.err


def test_the_check_as_json(cli: Cli, small: Path, npu: Path) -> None:
    found = json.loads(cli("check", small, "--backend", npu, "--json").out)
    assert (found["backend"], found["is_met"]) == ("npu", True)
    assert (found["before"]["nodes"], found["before"]["taken"]) == (3, 1)
    assert found["before"]["gaps"][0]["reasons"] == ["the target has no such operator"]
    assert found["mended"][0]["pass"] == "eliminate_identity"
    assert found["mended"][0]["count"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--backend", "portabel"], "did you mean 'portable'"),
        (["--backend", "portable", "-O", "9"], "-O takes 0 to 4"),
        (["--backend", "portable", "--edit", "drop nothing"], "in the edit 'drop nothing' of user"),
        ([], "--backend"),
    ],
)
def test_wrong_usage_is_reported_before_the_model_is_read(
    cli: Cli, options: list[str], said: str
) -> None:
    ended = cli("check", "nowhere.onnx", *options)
    assert ended.code == 2
    assert said in ended.err


def test_backends_are_listed(cli: Cli) -> None:
    ended = cli("backends")
    assert ended.code == 0
    assert "onnxruntime_cpu" in ended.out
    names = [entry["name"] for entry in json.loads(cli("backends", "--json").out)]
    assert "portable" in names


def test_a_backend_is_described(cli: Cli, npu: Path) -> None:
    shown = cli("backends", npu, "-v").out
    for text in ("A chip that adds", "its manual", "drop eliminate_zero_bias", "no convolutions"):
        assert text in shown
    found = json.loads(cli("backends", npu, "--json").out)
    assert found["edits"] == [
        {"edit": "drop eliminate_zero_bias", "by": "npu", "why": "it has no convolutions"}
    ]
    assert found["operators"] == {"Add": ["any"]}


def test_optimize_takes_a_backend_and_edits(cli: Cli, small: Path, npu: Path) -> None:
    options = ("--backend", npu, "--edit", "drop eliminate_identity", "--print-pipeline")
    shown = cli("optimize", small, *options).out
    assert "npu: drop eliminate_zero_bias  # it has no convolutions" in shown
    assert "user: drop eliminate_identity" in shown
    assert "eliminate_zero_bias," not in shown
    plan = json.loads(cli("optimize", small, *options, "--json").out)
    assert plan["backend"] == "npu"
    dropped = {line.removeprefix("-").strip() for line in plan["diff"] if line.startswith("-")}
    assert dropped == {"eliminate_identity", "eliminate_zero_bias"}


def test_strict_fails_where_the_backend_does_not_take_the_result(
    cli: Cli, small: Path, npu: Path
) -> None:
    options = ("--dry-run", "--backend", npu, "--edit", "drop eliminate_identity")
    assert cli("optimize", small, *options).code == 0
    ended = cli("optimize", small, *options, "--strict")
    assert ended.code == 4
    assert "npu does not take the model: Identity: the target has no such operator" in ended.err


def test_a_model_that_the_standard_forbids_is_named(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "wrong.onnx"
    text = "(float[2,3,4] x) => (float[?,?,?] y) { y = Transpose<perm = [0,0,5]>(x) }"
    onnx.save(parse(text), path)
    ended = cli("check", path, "--backend", "portable13")
    assert "onnx.checker rejects the model: " in ended.out
    assert "repeated value" in ended.out.replace("\n", " ")
    found = json.loads(cli("check", path, "--backend", "portable13", "--json").out)
    assert "repeated value" in found["complaint"]


def test_a_model_that_is_not_taken_names_the_command_that_helps(cli: Cli, small: Path) -> None:
    profile = small.with_name("npu.toml")
    profile.write_text("api_version = 1\nname = 'npu'\n[operators]\nMul = true\n")
    ended = cli("check", small, "--backend", profile)
    assert ended.code == 4
    assert ended.out.splitlines()[-1] == f"what helps: tiered doctor {small} --backend {profile}"
