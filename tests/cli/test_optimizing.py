"""Optimise one file: read, run the passes, verify, write, print; and what a failure leaves."""

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tests.small import failing, registered
from tiered import Graph, Value, get_pass, op, rewrite, var
from tiered.cli import optimizing
from tiered.cli.optimizing import optimize_file, run_prepared, write_result
from tiered.cli.outcome import Outcome, observed
from tiered.cli.prepared import PreparedRun
from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.watch import WatchOptions
from tiered.cli.writing import Goal
from tiered.support.errors import (
    ModelError,
    PassError,
    PassNotFoundError,
    PreconditionError,
    TargetError,
    UsageError,
    VerificationError,
)
from tiered.testing import parse


@rewrite(op.Add(var.x, var.w), opt_level=None)
def subtract(graph: Graph, x: Value, w: Value) -> Value:
    """Of no meaning: Add(x, w)  =>  Sub(x, w)"""
    made: Value = graph.op.Sub(x, w)
    return made


def run(source: Path, out: Path | None, watch: WatchOptions | None = None, **options: Any) -> None:
    prepared = PreparedRun.of(OptimizeOptions(quiet=True, **options), watch)
    run_prepared(prepared, str(source), None if out is None else str(out))


def nodes(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_a_file_is_optimised_and_its_outcome_observed(small: Path) -> None:
    out = small.with_name("out.onnx")
    seen: list[Outcome | Exception] = []
    with observed(seen.append):
        run(small, out)
    (outcome,) = seen
    assert isinstance(outcome, Outcome)
    assert nodes(out) == ["Add"]
    assert (outcome.source, outcome.target, outcome.failed, outcome.what) == (
        str(small),
        str(out),
        None,
        "",
    )
    assert outcome.result is not None
    assert outcome.result.after.nbytes == out.stat().st_size


def test_a_dry_run_has_an_outcome_without_a_file(small: Path) -> None:
    seen: list[Outcome | Exception] = []
    with observed(seen.append):
        run(small, small.with_name("out.onnx"), dry_run=True)
    (outcome,) = seen
    assert isinstance(outcome, Outcome)
    assert outcome.target is None
    assert not small.with_name("out.onnx").exists()


def test_the_pipeline_is_printed_without_reading_a_file(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = PreparedRun.of(OptimizeOptions(passes="inline"), WatchOptions(print_pipeline=True))
    run_prepared(prepared, "none.onnx", None)
    assert capsys.readouterr().out.startswith("1 of 1 pass would run\n")


def test_a_command_of_its_own_runs_its_passes(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = small.with_name("out.onnx"), small.with_name("page.html")
    passes = [get_pass("eliminate_identity")]
    write_result(
        str(small), str(out), OptimizeOptions(), passes, "clean", html=str(page), command="tidy"
    )
    assert nodes(out) == ["Add"]
    assert "out.onnx  (clean, " in capsys.readouterr().out
    assert "tiered tidy" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"disable": ("inlin",)}, PassNotFoundError),
        ({"passes": "inlin"}, PassNotFoundError),
        ({"verify": "ofen"}, UsageError),
        ({"edit": ("drop nothing",)}, UsageError),
        ({"backend": "none_such"}, UsageError),
    ],
)
def test_a_wrong_name_is_reported_before_the_model_is_read(
    tmp_path: Path, options: Any, kind: Any
) -> None:
    source = tmp_path / "broken.onnx"
    source.write_bytes(b"no model")
    with pytest.raises(kind):
        run(source, tmp_path / "out.onnx", **options)
    with pytest.raises(ModelError):
        run(source, tmp_path / "out.onnx")


def test_what_differs_is_not_written_and_told_as_json(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = small.with_name("out.onnx")
    with registered(subtract), pytest.raises(VerificationError):
        run(small, out, passes="eliminate_identity,subtract", verify="each", json=True)
    record = json.loads(capsys.readouterr().out)
    assert (record["exit_code"], record["output"], record["after"]) == (3, None, None)
    assert [each["name"] for each in record["passes"]] == ["eliminate_identity", "subtract"]
    assert not out.exists()


def test_an_expectation_that_is_not_met_is_told_with_the_result(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TargetError, match="expected nodes<=0, found 1"):
        run(small, small.with_name("out.onnx"), expect=("nodes<=0",), json=True)
    record = json.loads(capsys.readouterr().out)
    assert (record["exit_code"], record["after"]["nodes"]) == (4, 1)
    with pytest.raises(TargetError):
        run(small, None, expect=("nodes<=0",), dry_run=True)
    assert capsys.readouterr().out == ""


def test_a_certificate_is_written_after_the_result(small: Path) -> None:
    out, file = small.with_name("out.onnx"), small.with_name("c.json")
    run(small, out, certify=str(file))
    assert json.loads(file.read_text())["after"]["file"] == "out.onnx"
    file.unlink()
    run(small, out, certify=str(file), dry_run=True)
    assert json.loads(file.read_text())["after"] is None
    file.unlink()
    run(small, out, certify="on")
    assert not file.exists()


@pytest.mark.parametrize("memory", ["1MB", "1"])
def test_too_little_memory_is_an_error(small: Path, memory: str) -> None:
    with pytest.raises(UsageError, match=r"memory.max: .* bytes are too few to run; at least "):
        run(small, small.with_name("out.onnx"), max_memory=memory)
    assert not small.with_name("out.onnx").exists()


# --- reproducers ----------------------------------------------------------------------------------


def test_a_difference_leaves_a_bundle_and_says_how_to_run_it(small: Path) -> None:
    folder = small.with_name("repro")
    with registered(subtract), pytest.raises(VerificationError) as caught:
        run(small, None, passes="subtract", verify="each", dry_run=True, reproducer=str(folder))
    (note,) = caught.value.__notes__
    assert f"\nreproduce  tiered replay {folder}" in note
    assert "subtract" in note
    assert any(folder.iterdir())


def test_without_the_option_nothing_is_left(small: Path) -> None:
    with registered(subtract), pytest.raises(VerificationError) as caught:
        run(small, None, passes="subtract", verify="each", dry_run=True)
    assert not getattr(caught.value, "__notes__", [])
    assert sorted(path.name for path in small.parent.iterdir()) == ["small.onnx"]


def _raising(error: Exception, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the passes raise, and return what is noted where a bundle would be written."""
    written: list[str] = []

    def fail(*args: Any) -> Any:
        raise error

    def note(source: str, folder: str, *more: object) -> str:
        written.append(folder)
        return "a note"

    monkeypatch.setattr(optimizing, "_optimize", fail)
    monkeypatch.setattr(optimizing, "_reproduced", note)
    return written


@pytest.mark.parametrize(
    ("error", "is_written"),
    [
        (PassError("it raised"), True),
        (VerificationError("it differs"), True),
        (PreconditionError("it does not begin"), False),
        (UsageError("a wrong name"), False),
        (ModelError("no model"), False),
    ],
)
def test_failures_of_passes_alone_have_a_bundle(
    small: Path, error: Exception, is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _raising(error, monkeypatch)
    with pytest.raises(type(error)) as caught:
        run(small, None, dry_run=True, reproducer="repro")
    assert written == (["repro"] if is_written else [])
    assert getattr(caught.value, "__notes__", []) == (["a note"] if is_written else [])


def test_a_bundle_that_cannot_be_written_is_a_note(small: Path) -> None:
    folder = small.with_name("file")
    folder.write_text("in the way")
    with registered(failing(ValueError("odd"))), pytest.raises(PassError) as caught:
        run(small, None, passes="failing", dry_run=True, reproducer=str(folder))
    (note,) = caught.value.__notes__
    assert note.startswith("no reproducer: ")


# --- what is printed ------------------------------------------------------------------------------


def test_notes_on_shared_weights_are_on_stderr(cli: Cli, small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = cli("optimize", small, out, "--share-weights")
    assert (
        ended.err
        == "tiered: note: --share-weights: the model has no external weights; nothing is shared\n"
    )
    assert cli("optimize", small, out, "--share-weights", "-q").err == ""


def test_what_is_watched_goes_to_stderr_beside_json(cli: Cli, small: Path) -> None:
    plain = cli("optimize", small, "--dry-run", "--statistics")
    assert "\nStatistics\n" in plain.out
    beside = cli("optimize", small, "--json", "--statistics")
    assert json.loads(beside.out)["after"]["nodes"] == 1
    assert "\nStatistics\n" in beside.err


def test_the_bare_goal_is_enough(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared = PreparedRun.of(OptimizeOptions(dry_run=True))
    optimize_file(prepared, Goal.of(str(small), None, prepared.options), what="as told")
    assert "small.onnx -> nothing written  (as told, " in capsys.readouterr().out
    assert parse(SMALL) == onnx.load(small)
