"""The summary of `tiered prepare`, for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tiered.cli.output.tables import Number, change, print_table, seconds, size
from tiered.cli.output.terminal import printable

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.preparation.done_step import DoneStep
    from tiered.extensions.preparation.preparation_result import Prepared

FEW: Final = 10
"""Rows of a table without -v."""


def print_prepared(console: Console, made: Prepared, target: str, *, verbose: bool) -> None:
    """Print the steps, what they changed, what stays float or on the host, and the commands.

    Args:
        console: where to.
        made: the preparation.
        target: the file to write; "" for none.
        verbose: list all rows.
    """
    limit = None if verbose else FEW
    goal = printable(made.out) if made.out else "nothing written"
    console.print(
        f"{printable(made.source)} -> {goal}  ({', '.join(_asked(made))}, {seconds(made.seconds)})",
        soft_wrap=True,
    )
    _print_steps(console, made)
    _print_lines(console, "interface changed:", made.interface)
    for each in made.done:
        _print_lines(console, f"{each.step.name}:", each.found)
    _print_float(console, made, limit)
    _print_host(console, made, limit)
    _print_lines(console, "pipeline:", made.pipeline)
    _print_lines(console, "commands that make the same bytes:", made.commands(out=target))
    if made.error:
        console.print(printable(f"the whole: {made.error}"), soft_wrap=True)
    console.print(printable(f"verified: {_verified(made)}"), soft_wrap=True)


def _asked(made: Prepared) -> list[str]:
    options = made.options
    backend = [] if options.backend is None else [f"for {options.backend}"]
    return [*backend, *(each.step.precision for each in made.done if each.step.precision),
            f"-O{options.opt_level}"]  # fmt: skip


def _print_lines(console: Console, title: str, lines: object) -> None:
    rows = [str(line) for line in lines] if isinstance(lines, list | tuple) else []
    if rows:
        console.print()
        console.print(title)
    for line in rows:
        console.print(printable(f"  {line}"), soft_wrap=True)


def _print_steps(console: Console, made: Prepared) -> None:
    has_target = made.coverage is not None
    taken = ("taken",) if has_target else ()
    headers = ("step", "", "nodes", "bytes", *taken, "verified", "largest difference", "time")
    rows = [_row(each, has_target=has_target) for each in made.done]
    before, after = made.before, made.after
    more = ("",) if has_target else ()
    totals = [
        ("before", "", before.nodes, size(before.nbytes), *more, "", "", ""),
        (
            "after", "", Number(change(before.nodes, after.nodes) or "same"),
            Number(change(before.nbytes, after.nbytes) or "same"), *more, "", "", "",
        ),
    ]  # fmt: skip
    print_table(console, "Steps", headers, rows, totals)


def _row(each: DoneStep, *, has_target: bool) -> tuple[object, ...]:
    what = each.step.what if each.changed else f"{each.step.what} (no change)".strip()
    verdict = each.verdict.partition(" (")[0] or "no"
    promise = f"{verdict} ({each.promise})" if verdict in ("yes", "in part") else verdict
    taken = (each.taken,) if has_target else ()
    return (
        each.step.name, what, each.after.nodes, size(each.after.nbytes), *taken, promise,
        Number(f"{each.largest:.1e}"), seconds(each.seconds),
    )  # fmt: skip


def _print_float(console: Console, made: Prepared, limit: int | None) -> None:
    rows = [
        (remark.op_type or "the model", remark.count, remark.reason, ", ".join(remark.nodes[:2]))
        for remark in made.stays_float
    ]
    if rows:
        headers = ("operator", "nodes", "reason", "for example")
        print_table(console, "Stays as it is", headers, rows, limit=limit, more="more rows")


def _print_host(console: Console, made: Prepared, limit: int | None) -> None:
    coverage = made.coverage
    if coverage is None:
        return
    rows = [
        (gap.operator, len(gap.nodes), "; ".join(gap.reasons),
         ", ".join(node.label for node in gap.nodes[:2]))
        for gap in coverage.gaps
    ]  # fmt: skip
    if rows:
        headers = ("operator", "nodes", "why not", "for example")
        title = f"Stays on the host: not for {coverage.backend}"
        print_table(console, title, headers, rows, limit=limit, more="more rows")
    _print_lines(console, "the model itself:", [str(refusal) for refusal in coverage.model])
    console.print()
    console.print(printable(coverage))


def _verified(made: Prepared) -> str:
    words = Counter(each.verdict.partition(" (")[0] or "no" for each in made.done if each.changed)
    if not words:
        return "nothing to verify (no step changed anything)"
    if made.is_verified:
        return f"yes (every step within its promise; the whole: {made.promise})"
    said = ", ".join(f"{count} {word}" for word, count in words.items())
    return f"not as a whole (steps: {said})"
