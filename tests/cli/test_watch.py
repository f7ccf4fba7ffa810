"""Watching passes from the command line: remarks, plan, time, trace, dump, diff, limit, config."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import Cli
from tests.cli.test_optimize import break_promise, ops, registered
from tiered.cli.commands import load_command
from tiered.cli.line.reader import read
from tiered.testing import parse

OPTIMIZE = ("optimize", "--dry-run")


# --- remarks --------------------------------------------------------------------------------------


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("watch")


def test_remarks_are_said_by_kind(cli: Cli, small: Path) -> None:
    everything = cli(*OPTIMIZE, small, "--remarks").out
    assert "Remarks: applied" in everything
    assert "eliminate_identity: 2 rewrites" in everything
    assert "Remarks: skipped" in everything
    applied = cli(*OPTIMIZE, small, "--remarks=applied").out
    assert "Remarks: applied" in applied
    assert "skipped" not in applied
    missed = cli(*OPTIMIZE, small, "--passes", "eliminate_nop_arithmetic", "--remarks=missed").out
    assert "eliminate_nop_arithmetic: 1 Add unchanged" in missed


def test_how_many_nodes_a_remark_names_is_a_config_option(cli: Cli, small: Path) -> None:
    one = cli(*OPTIMIZE, small, "--remarks=applied", "--set", "remarks.examples=1").out
    assert "(a, ...)" in one


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("--remarks b.onnx", {"remarks": "all", "out": "b.onnx"}),
        ("--remarks missed,failed b", {"remarks": "missed,failed", "out": "b"}),
        ("--remarks=missed b", {"remarks": "missed", "out": "b"}),
        ("--diff --print-after", {"diff": "all", "print_after": "all"}),
        ("--diff=x", {"diff": "x"}),
        ("--external-data 1MB b.onnx", {"external_data": "1MB", "out": "b.onnx"}),
        ("--diff fold_constant,fuse_*", {"diff": "fold_constant,fuse_*"}),
        ("--print-after fold_constant", {"print_after": "fold_constant"}),
        ("--certify c.json", {"certify": "c.json"}),
        ("-O3 --diff --", {"diff": "all", "opt_level": 3}),
    ],
)
def test_an_option_without_a_value_means_all(text: str, values: dict[str, object]) -> None:
    line = read(load_command("optimize"), ["a.onnx", *text.split()])
    assert values.items() <= line.values.items()


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("--verify", "finl"),
        ("--diff", "fold_constnat"),
        ("--print-after", "out"),
        ("--print-before", "fuse_gelu,x"),
        ("--external-data", "1XB"),
        ("--remarks", "mised"),
    ],
)
def test_a_word_that_may_be_a_value_is_no_file(
    cli: Cli, small: Path, monkeypatch: pytest.MonkeyPatch, option: str, word: str
) -> None:
    monkeypatch.chdir(small.parent)
    before = sorted(os.listdir())
    ended = cli("optimize", small.name, option, word)
    assert (ended.code, f"type {option}={word} for a value, ./{word} for a file" in ended.err) == (
        2,
        True,
    ), ended.err
    assert sorted(os.listdir()) == before


def test_a_file_that_exists_follows_an_option_without_a_value(
    cli: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.rename(small.with_name("model")).parent)
    assert cli("optimize", "--verify", "model", "out.onnx").code == 0
    assert ops(Path("out.onnx")) == ["Add"]


# --- the plan -------------------------------------------------------------------------------------


def test_the_plan_says_what_runs_and_why_not_the_rest(cli: Cli) -> None:
    ended = cli(
        "optimize", "any.onnx", "--print-pipeline", "-O1", "--disable", "eliminate_identity"
    )
    assert (ended.code, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()[1:] if line[:1] == " "]
    lines = {row[1]: row for row in rows}
    assert lines["simplify_inference"][0] == "runs"
    assert lines["fold_constant"][0] == "skips"
    assert "needs opt_level 2; it is 1, set at the command line" in ended.out
    assert "it is 2, the default" in cli("optimize", "any.onnx", "--print-pipeline").out
    assert "disabled by 'eliminate_identity', set at the command line" in ended.out
    assert "opt-in: runs only when required" in ended.out


def test_the_plan_of_a_pipeline_of_ones_own_reads_back(cli: Cli) -> None:
    text = "eliminate_identity,fix(fold_constant{max_growth=1MB})"
    ended = cli("optimize", "any.onnx", "--print-pipeline", "-O0", "--passes", text, "--json")
    plan = json.loads(ended.out)
    assert plan["pipeline"] == text
    assert [entry["runs"] for entry in plan["passes"]] == [True, True]
    assert plan["passes"][1]["reason"] == "asked for by name"


# --- instruments ----------------------------------------------------------------------------------


def test_times_and_statistics_are_printed_after_the_summary(cli: Cli, small: Path) -> None:
    said = cli(*OPTIMIZE, small, "--time", "--statistics").out
    assert said.index("What changed") < said.index("inclusive") < said.index("attempts")
    assert "  default" in said
    as_json = cli("optimize", small, "--json", "--time")
    json.loads(as_json.out)
    assert "inclusive" in as_json.err


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_a_trace_is_saved(cli: Cli, small: Path, suffix: str) -> None:
    file = small.with_name(f"trace.{suffix}")
    assert cli(*OPTIMIZE, small, "--trace", file).code == 0
    assert "eliminate_identity" in file.read_text()


def test_a_trace_is_saved_when_a_pass_fails(cli: Cli, small: Path) -> None:
    file = small.with_name("trace.jsonl")
    with registered(break_promise):
        assert cli(*OPTIMIZE, small, "--passes", "break_promise", "--trace", file).code == 5
    assert json.loads(file.read_text().splitlines()[0])["outcome"] == "failed"


def test_a_trace_that_cannot_be_saved_is_reported_before_any_work(cli: Cli, small: Path) -> None:
    assert cli(*OPTIMIZE, small, "--trace", "trace.txt").code == 2
    assert cli(*OPTIMIZE, small, "--trace", small.parent / "no" / "trace.json").code == 1


def test_the_models_between_are_dumped(cli: Cli, small: Path) -> None:
    folder = small.with_name("dump")
    ended = cli(*OPTIMIZE, small, "--dump", folder)
    names = sorted(os.listdir(folder))
    assert names[0] == "000-input.onnx"
    assert any(name.endswith("-eliminate_identity.onnx") for name in names)
    onnx.checker.check_model(onnx.load(folder / names[-1]))
    said = f"dumped {len(names)} models into {folder} (weights of more than 1,024 elements left out"
    assert said in ended.out


@pytest.mark.parametrize("weights", [False, True])
def test_a_dump_has_large_weights_only_where_they_are_asked_for(
    cli: Cli, tmp_path: Path, weights: bool
) -> None:
    text = "(float[2000] x) => (float[2000] y) <float w = {0}> { a = Identity(x)  y = Add(a, w) }"
    model, array = parse(text), np.ones(2000, np.float32)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(array, "w"))
    source, folder = tmp_path / "m.onnx", tmp_path / "dump"
    onnx.save(model, source)
    ended = cli(*OPTIMIZE, source, "--dump", folder, *(["--dump-weights"] if weights else []))
    assert ("with all weights" in ended.out) == weights
    for path in folder.iterdir():
        dumped = onnx.load(path)
        assert [tensor.name for tensor in dumped.graph.initializer] == (["w"] if weights else [])
        assert (path.stat().st_size > array.nbytes) == weights
        onnx.checker.check_model(dumped, full_check=True)


def test_weights_of_no_dump_are_a_usage_error(cli: Cli, small: Path) -> None:
    assert cli(*OPTIMIZE, small, "--dump-weights").code == 2


def test_diffs_and_models_go_to_stderr(cli: Cli, small: Path) -> None:
    ended = cli(*OPTIMIZE, small, "--diff=eliminate_identity")
    assert ended.err.startswith("--- before eliminate_identity\n+++ after eliminate_identity\n")
    printed = cli(*OPTIMIZE, small, "--print-after=eliminate_identity", "--print-before=infer_*")
    assert printed.err.count("# after eliminate_identity") == 1
    assert "# before infer_shapes" in printed.err
    assert cli(*OPTIMIZE, small, "--diff=eliminate_identty").code == 2


def test_a_limit_stops_after_so_many_rewrites(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    for limit, left in ((0, 2), (1, 1), (2, 0)):
        limited = ("--passes", "eliminate_identity", "--limit", limit)
        assert cli("optimize", small, out, *limited).code == 0
        assert ops(out).count("Identity") == left
    assert cli(*OPTIMIZE, small, "--limit", "-1").code == 2


def test_the_plan_knows_the_groups_of_its_passes(cli: Cli) -> None:
    passes = "sweeping(eliminate_identity),infer_shapes"
    ended = cli(
        *("optimize", "any.onnx", "--print-pipeline", "--passes", passes),
        *("--disable", "sweeping"),
    )
    assert ended.code == 0, ended.err
    assert "disabled by 'sweeping'" in ended.out


# --- config ---------------------------------------------------------------------------------------


def test_config_options_are_listed(cli: Cli) -> None:
    (entry,) = [e for e in json.loads(cli("options", "--json").out) if "remarks" in e["name"]]
    assert (entry["takes"], entry["default"]) == ("an integer", "5")
    assert "remarks.examples" in cli("options").out


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("remarks.exmples=1", "did you mean 'remarks.examples'"),
        ("remarks.examples=many", "takes an integer"),
        ("remarks.examples", "--set takes NAME=VALUE"),
    ],
)
def test_wrong_config_options_are_usage_errors(
    cli: Cli, small: Path, entry: str, message: str
) -> None:
    ended = cli(*OPTIMIZE, small, "--set", entry)
    assert ended.code == 2
    assert message in ended.err


CONFIG = """
opt_level = 3
disable = ["eliminate_identity", "fuse_*"]
dry-run = true
remarks = "skipped"

[config]
"remarks.examples" = 1
verify.seed = 7
"""


def test_a_file_holds_what_the_command_line_can_say(cli: Cli, small: Path) -> None:
    file = small.with_name("tiered.toml")
    file.write_text(CONFIG)
    ended = cli("optimize", small, "--config", file)
    assert ended.code == 0, ended.err
    assert "(-O3," in ended.out
    assert "nothing written" in ended.out
    assert "disabled by 'eliminate_identity', set at the command line" in ended.out


@pytest.mark.parametrize(
    ("verify", "said"),
    [
        ('"final"', "verified: yes (exact; all passes by runs of the model"),
        ("true", "verified: yes (exact; 1 pass by runs of the model"),
        ("false", "verified: no"),
    ],
)
def test_an_option_of_the_name_of_a_command_is_taken_from_the_file(
    cli: Cli, small: Path, verify: str, said: str
) -> None:
    file = small.with_name("tiered.toml")
    file.write_text(f'passes = "infer_shapes,eliminate_identity"\nverify = {verify}\n')
    ended = cli("optimize", small, "--config", file, "--dry-run")
    assert ended.code == 0, ended.err
    assert "Where the time went (2 passes)" in ended.out
    assert said in ended.out


def test_what_is_typed_goes_before_the_file(cli: Cli, small: Path) -> None:
    file = small.with_name("tiered.toml")
    file.write_text(CONFIG)
    ended = cli("optimize", small, "--config", file, "-O1", "--disable", "simplify_*")
    assert "(-O1," in ended.out
    assert "disabled by 'eliminate_identity'" not in ended.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("opt_levl = 3", "unknown key 'opt_levl'; did you mean 'opt_level'"),
        ("opt_level = 'high'", "high"),
        ("opt_level = [1, 2]", "[1, 2]"),
        ("passes = 3\n[passes2]", "unknown key 'passes2'"),
        ("[verify]\na = 1", "'verify' is a table"),
        ("[config]\nverify.sed = 1", "did you mean 'verify.seed'"),
        ("[config]\nverify.seed = 'x'", "takes an integer"),
        ("config = 'other.toml'", "unknown key 'config'"),
        ("= 3", "is not TOML"),
    ],
)
def test_a_wrong_file_is_a_usage_error(cli: Cli, small: Path, text: str, message: str) -> None:
    file = small.with_name("tiered.toml")
    file.write_text(text)
    ended = cli(*OPTIMIZE, small, "--config", file)
    assert ended.code == 2, ended.out
    assert message in ended.err


def test_a_file_that_is_not_there_is_a_usage_error(cli: Cli, small: Path) -> None:
    ended = cli(*OPTIMIZE, small, "--config", small.with_name("none.toml"))
    assert ended.code == 2
    assert "cannot read" in ended.err
