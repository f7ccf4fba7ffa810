"""What a batch prints: progress and a line for each model on stderr, the results on stdout."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self, get_args

from tiered.cli.output.tables import Number, print_table, seconds, size
from tiered.cli.output.terminal import notes, printable, results as stdout
from tiered.extensions.fleet.result_line import Status
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from tiered.extensions.fleet.job import Job
    from tiered.extensions.fleet.result_line import Result

_ROWS: Final = 50
"""A table of more models lists only those that failed, at most `_FAILURES` of them."""
_FAILURES: Final = 200
_HEADERS: Final = ("model", "status", "nodes", "bytes", "time", "peak", "verified", "reason")


class BatchReport:
    """Shows what runs on a terminal, and prints a line for each model that is done.

    Args:
        is_quiet: whether nothing is shown.
    """

    def __init__(self, *, is_quiet: bool) -> None:
        self._count = 0
        self._done = 0
        self._is_quiet = is_quiet
        self._console = notes()
        self._shown: tuple[Progress, TaskID] | None = None
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        is_shown = not self._is_quiet and sys.stderr is not None and sys.stderr.isatty()
        if is_shown:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            progress.start()
            self._shown = progress, progress.add_task("all models", total=None)
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def on_plan(self, count: int) -> None:
        """Show how many models there are."""
        self._count = count
        if self._shown is not None:
            progress, all_models = self._shown
            progress.update(all_models, total=count)

    def on_start(self, job: Job) -> None:
        """Show that a model runs."""
        if self._shown is not None:
            name = printable(job.source.name)
            self._rows[job.target] = self._shown[0].add_task(f"  {name}", total=1)

    def on_result(self, result: Result) -> None:
        """Print the line of a model."""
        self._done += 1
        if self._shown is not None:
            progress, all_models = self._shown
            progress.advance(all_models)
            row = self._rows.pop(result.target, None)
            if row is not None:
                progress.remove_task(row)
        if self._is_quiet:
            return
        said = f"[{self._done}/{self._count}] {result.source}: {result.status}"
        if result.reason:
            said += f": {result.reason}"
        elif result.nodes_after is not None:
            said += f", {result.nodes_before:,} -> {counted(result.nodes_after, 'node')}"
        if result.seconds:
            said += f" ({seconds(result.seconds)})"
        self._console.print(printable(said), soft_wrap=True)


def print_results(results: Sequence[Result], *, as_json: bool, is_quiet: bool) -> None:
    """Print results on stdout: a table and totals, or JSON lines."""
    if as_json:
        if sys.stdout is not None:
            sys.stdout.writelines(f"{result.line()}\n" for result in results)
        return
    failed = [result for result in results if not result.ok]
    listed = failed if is_quiet or len(results) > _ROWS else results
    console = stdout()
    if listed:
        title = "Models" if listed is results else "Models that failed"
        print_table(console, title, _HEADERS, [_cells(each) for each in listed[:_FAILURES]])
        if len(listed) > _FAILURES:
            console.print(f"  and {len(listed) - _FAILURES:,} more (--results has all)")
    if not is_quiet:
        counts = Counter(result.status for result in results)
        # In the order of the declaration: which model ends first must not show.
        said = ", ".join(f"{counts[each]:,} {each}" for each in get_args(Status) if counts[each])
        models = "model" if len(results) == 1 else "models"
        console.print(f"{len(results):,} {models}: {said}")


def _cells(result: Result) -> tuple[object, ...]:
    verified = {None: "", True: "yes", False: "no"}[result.verified]
    return (
        result.source,
        result.status,
        Number(_change(result.nodes_before, result.nodes_after)),
        Number(_change(result.bytes_before, result.bytes_after)),
        seconds(result.seconds) if result.seconds else Number(""),
        size(result.peak) if result.peak else Number(""),
        verified,
        result.reason,
    )


def _change(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return "" if before is None else f"{before:,}"
    return f"{before:,} -> {after:,}"
