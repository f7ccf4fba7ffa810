import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tiered import Model, PassContext, module_pass, register
from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.testing import parse

OVERRIDABLE = """(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"""


def ops(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


@contextmanager
def registered(pass_: Pass) -> Iterator[None]:
    register(pass_)
    try:
        yield
    finally:
        registry.unregister(pass_.name)


@module_pass(opt_level=0)
def add_to_itself(model: Model, ctx: PassContext) -> None:
    """Compute something else."""
    for node in model.main.nodes_of("Add"):
        model.main.set_input(node, 1, node.input(0))


@module_pass(opt_level=0)
def break_promise(model: Model, ctx: PassContext) -> None:
    """Have a bug."""
    assert len(model.main) > 1000, "it is small"


# --- files ----------------------------------------------------------------------------------------


def test_the_result_is_written_and_the_input_stays(cli: Cli, small: Path) -> None:
    before = small.read_bytes()
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out)
    assert (ended.code, ended.err) == (0, "")
    assert ops(out) == ["Add"]
    assert small.read_bytes() == before
    assert sorted(os.listdir(small.parent)) == ["out.onnx", "small.onnx"]


@pytest.mark.parametrize("flag", ["-o", "--output"])
def test_the_output_may_be_an_option(cli: Cli, small: Path, flag: str) -> None:
    out = small.with_name("out.onnx")
    assert cli("optimize", small, flag, out).code == 0
    assert out.exists()


@pytest.mark.parametrize("options", [["--dry-run"], ["--json"], ["--json", "--dry-run"]])
def test_without_an_output_nothing_is_written(cli: Cli, small: Path, options: list[str]) -> None:
    assert cli("optimize", small, *options).code == 0
    assert os.listdir(small.parent) == ["small.onnx"]


def test_a_dry_run_writes_nothing_even_with_an_output(cli: Cli, small: Path) -> None:
    ended = cli("optimize", small, small.with_name("out.onnx"), "--dry-run")
    assert ended.code == 0
    assert "nothing written" in ended.out
    assert os.listdir(small.parent) == ["small.onnx"]


def test_an_output_is_needed_otherwise(cli: Cli, small: Path) -> None:
    ended = cli("optimize", small)
    assert (ended.code, ended.out) == (2, "")
    assert "--dry-run" in ended.err


def test_the_input_is_not_overwritten(cli: Cli, small: Path) -> None:
    before = small.read_bytes()
    os.symlink(small, small.with_name("link.onnx"))
    for out in (small, small.with_name("link.onnx"), f"{small.parent}/./small.onnx"):
        assert cli("optimize", small, out).code == 2
    assert small.read_bytes() == before


@pytest.mark.parametrize("out", ["out.onnx", "out.onnx.data"])
def test_the_weights_of_the_input_are_not_overwritten(cli: Cli, tmp_path: Path, out: str) -> None:
    data = tmp_path / "out.onnx.data"
    model = parse("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")
    model.graph.initializer[0].raw_data = b"\0" * 8
    model.graph.initializer[0].ClearField("float_data")
    source = tmp_path / "m.onnx"
    onnx.save(model, source, save_as_external_data=True, location=data.name, size_threshold=0)
    before = data.read_bytes()
    ended = cli("optimize", source, tmp_path / out)
    assert ended.code == 2
    assert "would overwrite" in ended.err
    assert data.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "out.onnx.data"]
    assert cli("optimize", source, tmp_path / "other.onnx").code == 0


@pytest.mark.parametrize(
    "content", [b"", b"hello, no model\n" * 20, onnx.ModelProto(ir_version=8).SerializeToString()]
)
def test_what_is_no_model_is_an_error_that_names_the_file(
    cli: Cli, tmp_path: Path, content: bytes
) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(content)
    ended = cli("optimize", bad, tmp_path / "out.onnx")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("tiered: error: ")
    assert "bad.onnx" in ended.err
    assert ended.err.count("\n") == 1
    assert os.listdir(tmp_path) == ["bad.onnx"]


def test_a_truncated_model_is_an_error(cli: Cli, small: Path) -> None:
    cut = small.with_name("cut.onnx")
    cut.write_bytes(small.read_bytes()[:-1])
    assert cli("optimize", cut, small.with_name("out.onnx")).code == 1
    assert not small.with_name("out.onnx").exists()


def test_a_missing_input_and_a_directory_are_errors(cli: Cli, tmp_path: Path) -> None:
    for source in (tmp_path / "none.onnx", tmp_path):
        ended = cli("optimize", source, tmp_path / "out.onnx")
        assert (ended.code, ended.out) == (1, "")
        assert str(source) in ended.err


def test_an_output_that_cannot_be_written_is_an_error(cli: Cli, small: Path) -> None:
    for out in (small.parent, small.parent / "no" / "out.onnx"):
        ended = cli("optimize", small, out)
        assert (ended.code, ended.out) == (1, "")
        assert "cannot write" in ended.err
    assert os.listdir(small.parent) == ["small.onnx"]


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        ([], 2),
        (["-O0"], 0),
        (["-O3"], 3),
        (["-O", "4"], 4),
        (["--opt-level", "1"], 1),
        (["--opt-level=3"], 3),
    ],
)
def test_the_level_has_several_forms(cli: Cli, small: Path, tokens: list[str], level: int) -> None:
    assert json.loads(cli("optimize", small, "--json", *tokens).out)["opt_level"] == level


@pytest.mark.parametrize("level", ["5", "-1", "two"])
def test_a_level_that_does_not_exist_is_a_usage_error(cli: Cli, small: Path, level: str) -> None:
    assert cli("optimize", small, "--json", f"-O={level}").code == 2


@pytest.mark.parametrize(
    "tokens",
    [
        ["--disable", "eliminate_identity"],
        ["--disable", "eliminate_deadend,eliminate_identity"],
        ["--disable", "fold_constant", "--disable", "eliminate_id*"],
        ["--disable=EliminateIdentity"],
    ],
)
def test_a_disabled_pass_does_not_run(cli: Cli, small: Path, tokens: list[str]) -> None:
    out = small.with_name("out.onnx")
    assert cli("optimize", small, out, *tokens).code == 0
    assert "Identity" in ops(out)


def test_a_required_pass_runs_below_its_level(cli: Cli, small: Path) -> None:
    ran = _ran(cli, small, "-O0", "--require", "fold_constant,fuse_bn_into_conv")
    assert {"fold_constant", "fuse_bn_into_conv"} <= ran
    assert "fold_constant" not in _ran(cli, small, "-O0")


def _ran(cli: Cli, small: Path, *tokens: str) -> set[str]:
    record = json.loads(cli("optimize", small, "--json", *tokens).out)
    return {entry["name"] for entry in record["passes"] if entry["ran"]}


def test_an_unknown_pass_is_a_usage_error_before_the_model_is_read(
    cli: Cli, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"no model at all")
    for option in ("--disable", "--require", "--passes"):
        ended = cli("optimize", bad, tmp_path / "out.onnx", option, "eliminate_identty")
        assert (ended.code, ended.out) == (2, "")
        assert "did you mean 'eliminate_identity'?" in ended.err
        assert ended.err.count("\n") == 1


def test_a_required_pass_has_options(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    split = "split_by_budget{max_bytes=1000,dims=[N=2],default_dim=3}"
    planned = cli("optimize", small, "--print-pipeline", "--require", f"schedule,{split}")
    assert planned.code == 0, planned.err
    assert "split_by_budget{max_bytes=1000,dims=['N=2'],default_dim=3}" in planned.out
    for given, words in (
        ("schedule{objective=width}", "option 'objective' takes one of peak, depth, not 'width'"),
        ("recompute{much=1}", "recompute has no option 'much'"),
        ("scedule{objective=depth}", "did you mean 'schedule'"),
    ):
        ended = cli("optimize", small, out, "--require", given)
        assert (ended.code, words in ended.err) == (2, True), ended.err
        assert not out.exists()


def test_one_pass_cannot_be_both_required_and_disabled(cli: Cli, small: Path) -> None:
    options = ["--require", "fold_constant", "--disable", "fold_constant"]
    assert cli("optimize", small, "--dry-run", *options).code == 2


def test_a_pipeline_of_ones_own_runs_all_that_it_lists(cli: Cli, small: Path) -> None:
    pipeline = "fold_constant{max_growth=2%},fix(eliminate_identity,eliminate_deadend)"
    ran = _ran(cli, small, "-O0", "--passes", pipeline)
    assert ran == {"fold_constant", "eliminate_identity", "eliminate_deadend"} | (
        ran & {"infer_shapes", "eliminate_unused_initializer"}
    )


@pytest.mark.parametrize("text", ["", "fix(", "fold_constant{max_growth=x}", "fold_constant{a=1}"])
def test_a_pipeline_that_does_not_parse_is_a_usage_error(cli: Cli, small: Path, text: str) -> None:
    ended = cli("optimize", small, "--dry-run", "--passes", text)
    assert (ended.code, ended.out) == (2, "")


def test_strict_makes_an_entry_that_meets_no_pass_an_error(cli: Cli, small: Path) -> None:
    entry = ["--disable", "fuse_bn_into_conv", "--passes", "eliminate_identity"]
    lenient = cli("optimize", small, "--dry-run", *entry)
    assert lenient.code == 0
    assert lenient.err.startswith("tiered: note: ")
    assert "fuse_bn_into_conv" in lenient.err
    assert "matches no pass" in lenient.err
    assert cli("optimize", small, "--dry-run", "--strict", *entry).code == 2


def test_annotate_writes_the_types(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(parse("(float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }"), source)
    plain, annotated = tmp_path / "plain.onnx", tmp_path / "annotated.onnx"
    assert cli("optimize", source, plain).code == 0
    assert cli("optimize", source, annotated, "--annotate").code == 0
    assert [info.name for info in onnx.load(annotated).graph.value_info] == ["a"]
    assert not onnx.load(plain).graph.value_info


# --- verification and bugs ------------------------------------------------------------------------


def test_a_verified_result_is_written_and_reported(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--verify")
    assert ended.code == 0
    assert "verified: yes (exact" in ended.out
    assert out.exists()


def test_a_wrong_result_is_not_written(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    with registered(add_to_itself):
        ended = cli("optimize", small, out, "--verify", "--passes", "add_to_itself")
        assert (ended.code, ended.out) == (3, "")
        assert "add_to_itself" in ended.err
        assert os.listdir(small.parent) == ["small.onnx"]
        assert cli("optimize", small, out, "--passes", "add_to_itself").code == 0


def test_a_failed_verification_keeps_an_older_result(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    out.write_bytes(b"older")
    with registered(add_to_itself):
        assert cli("optimize", small, out, "--verify", "--passes", "add_to_itself").code == 3
    assert out.read_bytes() == b"older"


def test_a_bug_in_a_pass_is_said_and_nothing_is_written(cli: Cli, small: Path) -> None:
    with registered(break_promise):
        ended = cli("optimize", small, small.with_name("out.onnx"), "--passes", "break_promise")
    assert (ended.code, ended.out) == (5, "")
    assert "break_promise" in ended.err
    assert "report" in ended.err
    assert "Traceback" not in ended.err
    assert os.listdir(small.parent) == ["small.onnx"]


# --- what is said ---------------------------------------------------------------------------------


def test_the_summary_has_operators_totals_times_and_verification(cli: Cli, small: Path) -> None:
    shown = cli("optimize", small, small.with_name("out.onnx")).out
    for text in (
        *("small.onnx -> ", "out.onnx  (-O2, ", "Identity", "-2 (-100%)", "nodes", "parameters"),
        *("bytes", "Where the time went", "verified: no (--verify"),
    ):
        assert text in shown
    assert "Add " not in shown


def test_v_shows_all_passes_and_remarks(cli: Cli, small: Path) -> None:
    plain = cli("optimize", small, "--dry-run").out
    told = cli("optimize", small, "--dry-run", "-v").out
    assert "more, " in plain
    assert "(-v lists them)" not in told
    assert "final_check" in told
    assert "eliminate_identity: 2 " in told
    assert "fuse_bn_into_conv: needs opt_level 3" in told
    assert "peak memory: " in told


def test_overridable_initializers_are_reported_with_the_option(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(parse(OVERRIDABLE), source)
    ended = cli("optimize", source, "--dry-run")
    assert "1 initializer is also a graph input, so overridable and not constant" in ended.out
    assert "`--require remove_initializer_from_input` frees it" in ended.out
    freed = cli("optimize", source, "--dry-run", "--require", "remove_initializer_from_input")
    assert "so overridable" not in freed.out


def test_q_prints_nothing_but_errors(cli: Cli, small: Path) -> None:
    ended = cli("optimize", small, small.with_name("out.onnx"), "-q", "--verify")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert cli("optimize", small, small, "-q").err.startswith("tiered: error: ")


def test_q_and_v_exclude_each_other(cli: Cli, small: Path) -> None:
    assert cli("optimize", small, "--dry-run", "-q", "-v").code == 2


@pytest.mark.parametrize("extra", [[], ["-q"], ["-v"], ["--verify"]])
def test_json_is_all_of_stdout(cli: Cli, small: Path, extra: list[str]) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--json", *extra)
    assert (ended.code, ended.err) == (0, "")
    record = json.loads(ended.out)
    assert record.keys() == {
        *("input", "output", "opt_level", "before", "after", "passes", "seconds", "verified"),
        "certified",
        *("fused", "verification", "overridable", "remarks", "versions", "peak_memory", "ways"),
        *("interface", "verdict"),
        *("error", "exit_code"),
    }
    assert (record["error"], record["exit_code"]) == (None, 0)
    assert (record["input"], record["output"]) == (str(small), str(out))
    assert record["before"]["operators"] == {"Identity": 2, "Add": 1}
    assert record["after"]["operators"] == {"Add": 1}
    assert record["after"].keys() == {"nodes", "operators", "parameters", "bytes"}
    assert record["verified"] is ("--verify" in extra)
    assert record["peak_memory"] > 1 << 20
    assert record["versions"].keys() == {
        *("tiered", "python", "onnx", "onnxruntime", "numpy", "networkx")
    }
    for entry in record["passes"]:
        assert entry.keys() == {"name", "ran", "reason", "changed", "rewrites", "seconds"}
    identity = next(e for e in record["passes"] if e["name"] == "eliminate_identity")
    assert (identity["ran"], identity["changed"], identity["rewrites"]) == (True, True, 2)


def test_json_is_printed_of_a_result_that_fails_verification(cli: Cli, small: Path) -> None:
    with registered(add_to_itself):
        ended = cli(
            *("optimize", small, small.with_name("out.onnx"), "--json", "--verify"),
            *("--passes", "add_to_itself"),
        )
    assert ended.code == 3
    record = json.loads(ended.out)
    whole = json.loads(cli("optimize", small, "--json").out)
    assert record.keys() == whole.keys()
    assert (record["exit_code"], record["output"], record["verified"]) == (3, None, False)
    assert "add_to_itself" in record["error"]
    assert record["before"] == whole["before"]
    assert record["after"] is None
    assert [entry["name"] for entry in record["passes"]][-1] == "add_to_itself"


def test_json_is_printed_of_a_result_that_is_not_as_expected(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--json", "--expect", "Identity>=1")
    assert ended.code == 4
    record = json.loads(ended.out)
    assert (record["exit_code"], record["output"]) == (4, None)
    assert "expected Identity>=1, found 0" in record["error"]
    assert record["after"]["operators"] == {"Add": 1}
    assert not out.exists()


def test_the_bytes_of_json_are_those_of_the_files(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    record = json.loads(cli("optimize", small, out, "--json").out)
    assert record["before"]["bytes"] == small.stat().st_size
    assert record["after"]["bytes"] == out.stat().st_size


def test_json_of_a_verified_run_has_the_differences(cli: Cli, small: Path) -> None:
    record = json.loads(cli("optimize", small, "--json", "--verify").out)
    assert len(record["verification"]) == 2
    assert record["verification"][0] == {
        "numerics": "exact",
        "outputs": [{"name": "y", "max_abs": 0.0, "max_rel": 0.0, "limit": None}],
        "dims": {"n": 2},
        "rules": {"x": "normal distribution", "*": "sizes as usual"},
    }


def test_a_verified_run_can_have_inputs_of_ones_own(cli: Cli, small: Path) -> None:
    np.save(small.with_name("x.npy"), np.ones((5, 2), np.float32))
    inputs = ("--inputs", small.with_name("x.npy"))
    ended = cli("optimize", small, "--dry-run", "--verify", "-v", *inputs)
    assert "inputs 1\n  x [5, 2]: given" in ended.out
    ended = cli("optimize", small, "--dry-run", "--verify", "--inputs", "nowhere.npy")
    assert (ended.code, "cannot read inputs from" in ended.err) == (1, True)


@pytest.mark.parametrize("how", ["each", "region", "final", "structure", "off"])
def test_each_way_to_verify_can_be_named(cli: Cli, small: Path, how: str) -> None:
    ended = cli("optimize", small, "--dry-run", f"--verify={how}")
    said = {"structure": "verified: structure only", "off": "verified: no"}
    assert said.get(how, "verified: yes (exact; ") in ended.out
    assert cli("optimize", small, "--dry-run", "--verify=some").code == 2


def test_names_from_the_model_cannot_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "m\x1b[2J.onnx"
    model = parse(SMALL)
    model.graph.node[0].op_type = "Bad\x1b[31m"
    onnx.save(model, source)
    for tokens in (["optimize", source, "--dry-run", "-v"], ["inspect", source]):
        ended = cli(*tokens)
        assert "\x1b" not in ended.out + ended.err


def test_the_names_of_python_are_taken_too(cli: Cli, small: Path) -> None:
    ended = cli("optimize", small, "--dry-run", "--json", "--disabled", "eliminate_identity")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["after"]["operators"] == {"Add": 1, "Identity": 2}
    required = ("--required", "convert_layout", "--input-shapes", "x:1,2")
    assert cli("optimize", small, "--dry-run", "--json", *required).code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--edit", "set truncate_on_var{var=a}"],
            "the edit 'set truncate_on_var{var=a}' has no effect, as truncate_on_var did not run: "
            "opt-in: runs only when required; require truncate_on_var",
        ),
        (
            ["--disable", "fold_constant", "--edit", "set fold_constant{max_growth=0}"],
            "has no effect, as fold_constant did not run: disabled by 'fold_constant'",
        ),
    ],
)
def test_options_that_have_no_effect_are_reported(
    cli: Cli, small: Path, options: list[str], words: str
) -> None:
    ended = cli("optimize", small, "--dry-run", *options)
    assert (ended.code, words in ended.err) == (0, True), ended.err
    assert ended.err.startswith("tiered: note: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        ["--edit", "set truncate_on_var{var=a}", "--require", "truncate_on_var"],
        ["--require", "fold_constant"],
        ["--require", "fuse_*"],
        ["--input-shape", "x:4,2"],
        ["--edit", "set fold_constant{max_growth=0}"],
    ],
)
def test_options_that_have_an_effect_are_not_reported(
    cli: Cli, small: Path, options: list[str]
) -> None:
    ended = cli("optimize", small, "--dry-run", *options)
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("command", ["optimize", "convert"])
def test_what_no_runtime_reads_is_stripped_and_listed(cli: Cli, small: Path, command: str) -> None:
    model = onnx.load(small)
    model.ir_version = 10
    for node in model.graph.node:
        node.metadata_props.add(key="pkg.stack_trace", value="/srv/me/model.py")
    onnx.save(model, small)
    out = small.with_name("out.onnx")
    ended = cli(command, small, out, "--strip", "metadata,names", "--verify")
    assert ended.code == 0, ended.err
    assert "strip: metadata pkg.stack_trace: " in ended.out
    result = onnx.load(out)
    assert not any(node.metadata_props or node.name for node in result.graph.node)
    assert {entry.key for entry in result.metadata_props} == {"tiered.source", "tiered.promise"}
    wrong = cli(command, small, out, "--strip", "metdata")
    assert wrong.code == 2
    expected = "--strip takes metadata, names, docs, marks, all, not 'metdata'"
    assert f"{expected}; did you mean 'metadata'?" in wrong.err


def test_a_pipeline_of_ones_own_is_stripped_at_its_end(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--passes", "eliminate_identity", "--strip", "names")
    assert ended.code == 0, ended.err
    assert not any(node.name for node in onnx.load(out).graph.node)


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("optimize")
