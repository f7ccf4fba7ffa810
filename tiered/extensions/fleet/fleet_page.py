"""The page of a fleet: what fails, which models stand out, which passes rewrite how many models."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, get_args

from tiered.extensions.fleet.result_line import Result, Status
from tiered.support.amounts import counted, size
from tiered.support.pages.render import page, short
from tiered.support.pages.sections import Section, Table, tables

_SHOWN: Final = 200
"""Rows of a table; the others are in the file that `--results` writes as lines."""

_OUTLIER: Final = 5.0
"""A model stands out if it takes this multiple of the median of all."""


def fleet_page(results: Sequence[Result]) -> str:
    """Return the page of a batch, with what needs attention first.

    Args:
        results: one for each model.
    """
    parts = [_summary(results), *_failures(results), *_outliers(results), *_passes(results)]
    return page("tiered batch", [*parts, *_models(results)])


def _summary(results: Sequence[Result]) -> Section:
    counts = Counter(result.status for result in results)
    rows = [(each, counts[each]) for each in get_args(Status) if counts[each]]
    taken = sum(result.seconds for result in results)
    notes = [f"{counted(len(results), 'model')}, {_seconds(taken)} of work"]
    if wrong := sum(result.verified is False for result in results):
        notes.append(f"not verified: {counted(wrong, 'model')}")
    return tables("Summary", Table("models by status", ("status", "models"), rows), notes=notes)


def _failures(results: Sequence[Result]) -> Iterator[Section]:
    """Yield what failed, by reason without the name of the model, the most frequent one first."""
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        if not result.ok:
            groups[result.status, _common(result)].append(result)
    if not groups:
        return
    ordered = sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    rows = [
        (len(found), status, short(reason), short(found[0].source))
        for (status, reason), found in ordered
    ]
    yield _table("What failed", ("models", "status", "reason", "for example"), rows)


def _common(result: Result) -> str:
    """Return the reason of a failure without the path of its model."""
    names = {result.source, os.path.basename(result.source)}
    reason = result.reason
    for name in sorted(names, key=len, reverse=True):
        reason = reason.replace(name, "MODEL")
    return reason


def _outliers(results: Sequence[Result]) -> Iterator[Section]:
    """Yield the models that take far more time or memory than others, the furthest first."""
    yield from _above(results, "Slow models", lambda result: result.seconds, _seconds)
    yield from _above(results, "Memory", lambda result: float(result.peak or 0), _bytes)


def _seconds(amount: float) -> str:
    return f"{amount:,.2f} s"


def _bytes(number: float) -> str:
    return size(round(number))


def _above(
    results: Sequence[Result],
    title: str,
    amount: Callable[[Result], float],
    shown: Callable[[float], str],
) -> Iterator[Section]:
    known = [result for result in results if amount(result) > 0]
    if not known:
        return
    middle = median(map(amount, known))
    found = [result for result in known if amount(result) > _OUTLIER * middle]
    rows = [
        (short(each.source), shown(amount(each)), f"{amount(each) / middle:.1f}", each.status)
        for each in sorted(found, key=lambda each: (-amount(each), each.source))
    ]
    count = counted(len(found), "model takes", "models take")
    note = f"the median is {shown(middle)}; {count} more than {_OUTLIER:.0f} times as much"
    yield _table(title, ("model", "takes", "over the median", "status"), rows, note)


def _passes(results: Sequence[Result]) -> Iterator[Section]:
    """Yield how many models each pass rewrote, the most first."""
    fired: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for result in results:
        for name, count in result.rewrites().items():
            fired[name].append((count, result.source))
    if not fired:
        return
    whole = sum(bool(result.passes) for result in results)
    rows = []
    for name, found in sorted(fired.items(), key=lambda each: (-len(each[1]), each[0])):
        most, source = max(found, key=lambda each: (each[0], each[1]))
        total = sum(count for count, _ in found)
        share = f"{100 * len(found) / whole:.0f} %"
        rows.append((name, len(found), share, total, most, short(source)))
    headers = ("pass", "models", "share", "rewrites", "most in one", "in")
    note = f"of {counted(whole, 'model')} that some pass rewrote"
    yield _table("What fires", headers, rows, note)


def _models(results: Sequence[Result]) -> Iterator[Section]:
    """Yield the models with the share of nodes that is left, the most first."""
    left = [
        (each.nodes_after / each.nodes_before, each)
        for each in results
        if each.nodes_before and each.nodes_after is not None
    ]
    if not left:
        return
    rows = [
        (short(each.source), each.nodes_before, each.nodes_after, f"{100 * share:.0f} %")
        for share, each in sorted(left, key=lambda pair: (-pair[0], pair[1].source))
    ]
    note = f"at the median {100 * median(share for share, _ in left):.0f} % of the nodes are left"
    yield _table("Nodes", ("model", "before", "after", "left"), rows, note)


def _table(
    title: str, headers: Sequence[str], rows: Sequence[Sequence[str | int | None]], note: str = ""
) -> Section:
    notes = [note] if note else []
    if len(rows) > _SHOWN:
        notes.append(f"the first {_SHOWN:,} of {len(rows):,} rows are shown")
    shown = [Table(title.lower(), headers, rows[:_SHOWN])] if rows else []
    return tables(title, *shown, notes=notes)
