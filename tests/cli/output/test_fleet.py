"""What a batch prints: a line for each model, a table, totals, JSON lines."""

import contextlib
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recorded import assert_values
from tiered.cli.output.fleet import BatchReport, print_results
from tiered.extensions.fleet.result_line import Result


def done(source: str = "a.onnx", **more: Any) -> Result:
    return Result(source=source, target=f"out/{source}", **{"status": "done", **more})


def lines_of(
    capsys: pytest.CaptureFixture[str], *results: Result, is_quiet: bool = False
) -> list[str]:
    with BatchReport(is_quiet=is_quiet) as report:
        report.on_plan(len(results))
        for result in results:
            report.on_result(result)
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_each_model_has_a_line_as_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    results = (
        done(nodes_before=1200, nodes_after=1, seconds=1.5),
        done("b.onnx", nodes_before=3, nodes_after=2000),
        done("c.onnx"),
        done(
            "d.onnx",
            status="failed",
            reason="no\tmodel",
            nodes_before=3,
            nodes_after=2,
            seconds=0.25,
        ),
        done("e.onnx", status="skipped"),
    )
    assert lines_of(capsys, *results) == [
        "[1/5] a.onnx: done, 1,200 -> 1 node (1.50 s)",
        "[2/5] b.onnx: done, 3 -> 2,000 nodes",
        "[3/5] c.onnx: done",
        r"[4/5] d.onnx: failed: no\tmodel (250.00 ms)",
        "[5/5] e.onnx: skipped",
    ]


@pytest.mark.parametrize(
    ("is_quiet", "is_terminal", "is_shown"),
    [(False, True, True), (True, True, False), (False, False, False), (False, None, False)],
)
def test_a_terminal_shows_what_runs(
    monkeypatch: pytest.MonkeyPatch, is_quiet: bool, is_terminal: bool | None, is_shown: bool
) -> None:
    calls: list[object] = []

    class Shown:
        """Notes what it is asked to show."""

        def __init__(self, *columns: object, **options: object) -> None:
            self.tasks = 0

        def __getattr__(self, name: str) -> Any:
            def call(*given: object, **more: object) -> int:
                calls.append((name, *given, *more.values()))
                self.tasks += name == "add_task"
                return self.tasks

            return call

    ways = {"isatty": lambda: is_terminal, "write": lambda text: None, "flush": lambda: None}
    stream = None if is_terminal is None else SimpleNamespace(encoding="utf-8", **ways)
    monkeypatch.setattr("rich.progress.Progress", Shown)
    monkeypatch.setattr(sys, "stderr", stream)
    job: Any = SimpleNamespace(source=SimpleNamespace(name="a\tb"), target="out/a.onnx")
    with BatchReport(is_quiet=is_quiet) as report:
        report.on_plan(2)
        report.on_start(job)
        report.on_result(done())
        report.on_result(done("b.onnx"))
    shown = [("start",), ("add_task", "all models", None), ("update", 1, 2),
             ("add_task", r"  a\tb", 1), ("advance", 1), ("remove_task", 2), ("advance", 1),
             ("stop",)]  # fmt: skip
    assert calls == (shown if is_shown else [])


def test_a_quiet_batch_has_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        lines_of(capsys, done(), done("b.onnx", status="failed", reason="odd"), is_quiet=True) == []
    )


def printed(
    capsys: pytest.CaptureFixture[str],
    *results: Result,
    as_json: bool = False,
    is_quiet: bool = False,
) -> list[str]:
    print_results(results, as_json=as_json, is_quiet=is_quiet)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_the_table_has_changes_times_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(
        capsys,
        done(nodes_before=10, nodes_after=5, bytes_before=2000, bytes_after=1000, seconds=2.0,
             peak=1 << 20, verified=True),
        done("b.onnx", status="failed", reason="no model", verified=False, nodes_before=1200),
        done("c.onnx", status="cached", nodes_after=3),
    )  # fmt: skip
    assert lines[0] == "Models"
    assert lines[1].split() == [
        "model",
        "status",
        "nodes",
        "bytes",
        "time",
        "peak",
        "verified",
        "reason",
    ]
    assert lines[3].split() == [
        "a.onnx", "done", "10", "->", "5", "2,000", "->", "1,000", "2.00", "s", "1.0", "MiB", "yes",
    ]  # fmt: skip
    assert lines[4].split() == ["b.onnx", "failed", "1,200", "no", "no", "model"]
    assert lines[5].split() == ["c.onnx", "cached"]
    assert lines[6] == "3 models: 1 done, 1 cached, 1 failed"


def test_totals_are_in_the_order_of_the_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    kinds: list[Any] = [
        "not run",
        "memory",
        "timeout",
        "crashed",
        "failed",
        "skipped",
        "cached",
        "done",
        "done",
    ]
    lines = printed(
        capsys, *(done(f"{number}.onnx", status=kind) for number, kind in enumerate(kinds))
    )
    assert lines[-1] == (
        "9 models: 2 done, 1 cached, 1 skipped, 1 failed, 1 crashed, 1 timeout, 1 memory, 1 not run"
    )
    assert printed(capsys, done())[-1] == "1 model: 1 done"
    assert printed(capsys) == ["0 models:"]


def test_a_quiet_batch_lists_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    failed = done("b.onnx", status="crashed", reason="signal 9")
    lines = printed(capsys, done(), failed, is_quiet=True)
    assert (lines[0], len(lines)) == ("Models that failed", 4)
    assert lines[3].split() == ["b.onnx", "crashed", "signal", "9"]
    assert printed(capsys, done(), is_quiet=True) == []


def test_many_models_list_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    many = [done(f"{number}.onnx") for number in range(50)]
    assert len(printed(capsys, *many)) == 50 + 4
    lines = printed(capsys, *many, done("bad.onnx", status="failed", reason="odd"))
    assert lines[0] == "Models that failed"
    assert lines[-1] == "51 models: 50 done, 1 failed"
    assert printed(capsys, *many, done("51.onnx")) == ["51 models: 51 done"]


def test_so_many_failures_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    failed = [done(f"{number}.onnx", status="failed", reason="odd") for number in range(1202)]
    lines = printed(capsys, *failed)
    assert len(lines) == 3 + 200 + 2
    assert lines[-2:] == ["  and 1,002 more (--results has all)", "1,202 models: 1,202 failed"]
    assert "more (--results" not in "".join(printed(capsys, *failed[:200]))


def test_json_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    results = [done(), done("b.onnx", status="failed", reason="odd", exit_code=1)]
    for is_quiet in (False, True):
        lines = printed(capsys, *results, as_json=True, is_quiet=is_quiet)
        assert [json.loads(line)["source"] for line in lines] == ["a.onnx", "b.onnx"]
        assert [Result.of_line(line) for line in lines] == results


def test_what_is_printed_is_recorded() -> None:
    def printed(*results: Result, as_json: bool = False, is_quiet: bool = False) -> None:
        print_results(results, as_json=as_json, is_quiet=is_quiet)

    def said(*results: Result, is_quiet: bool = False) -> None:
        with contextlib.redirect_stderr(sys.stdout), BatchReport(is_quiet=is_quiet) as report:
            report.on_plan(len(results))
            for result in results:
                report.on_result(result)

    names = {
        "printed": printed,
        "said": said,
        "done": done,
        "whole": done(
            "b.onnx",
            nodes_before=1200,
            nodes_after=1,
            bytes_before=2048,
            bytes_after=1,
            seconds=1.5,
            peak=4096,
            verified=True,
        ),
        "failed": done("c.onnx", status="failed", reason="no\tmodel", exit_code=1, verified=False),
    }
    assert_values(__file__, names)
