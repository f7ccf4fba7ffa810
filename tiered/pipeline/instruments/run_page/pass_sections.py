"""The sections of a run's page about its passes: the timeline, each pass, skipped and declined."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from string import ascii_uppercase
from typing import NamedTuple

from tiered.pipeline.instruments.tracing.events import Span
from tiered.support.amounts import change, counted
from tiered.support.numerics import Numerics
from tiered.support.pages import charts
from tiered.support.pages.render import short, visible
from tiered.support.pages.sections import Section, Table

MOST_NAMES = 200
"""Names of declined nodes for one reason."""
NAME_BUDGET = 600_000
"""Characters of names of declined nodes on a page."""
FEW = 3
"""Fewer skipped passes of one reason are no group."""
MOST_RUNS = 1500
"""Runs of passes in the table of runs, and in the chart."""
BIG = 6
"""Passes that the chart names: those that changed the number of nodes most."""

Hide = Callable[[str], str]
"""Removes the folders of this machine from a message."""


class TimelineRun(NamedTuple):
    """One pass that ran, with the round of the fixed point around it; 0 if there is none.

    `group` is the text of that fixed point: its passes.
    """

    span: Span
    round: int
    group: str = ""


def runs_of(spans: Iterable[Span], number: int = 0, group: str = "") -> Iterator[TimelineRun]:
    """Yield each pass that is no pipeline, in order, skipped ones too."""
    for span in spans:
        if not span.is_pipeline:
            yield TimelineRun(span, number, group)
        is_fixed = span.is_pipeline and span.name == "fix"
        inside = 1 if is_fixed else number if span.is_pipeline else 0
        seen: set[str] = set()
        for child in span.children:
            if is_fixed:
                if child.text in seen and not child.needed_by:
                    inside, seen = inside + 1, set()
                seen.add(child.text)
                yield from runs_of([child], inside, span.text)
            else:
                yield from runs_of([child], inside, group)


def groups_of(runs: Iterable[TimelineRun]) -> dict[str, str]:
    """Return a name for each fixed point, by its text: A, B, ... in the order of the run."""
    texts = dict.fromkeys(run.group for run in runs if run.round)
    return {text: letters(place) for place, text in enumerate(texts)}


def letters(place: int) -> str:
    """Return A, B, ... Z, AA, ..., for 0, 1, ..."""
    rest, last = divmod(place, len(ascii_uppercase))
    return (letters(rest - 1) if rest else "") + ascii_uppercase[last]


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds."""
    return f"{seconds * 1e3:,.2f} ms"


# --- the timeline ---------------------------------------------------------------------------------


def timeline(runs: Sequence[TimelineRun], *, times: bool) -> Section:
    """Return the nodes left after each pass as a curve, and a table of all runs in order."""
    ran = [run for run in runs if run.span.outcome != "skipped"]
    shown = ran[:MOST_RUNS]
    return Section(
        "Timeline",
        "timeline.html.j2",
        {
            "chart": _node_chart(shown),
            "bars": _time_bars(shown) if times else (),
            "table": _run_table(shown, times=times),
            "groups": _group_table(shown),
            "left_out": len(ran) - len(shown),
            "total": len(ran),
        },
    )


def _node_chart(runs: Sequence[TimelineRun]) -> charts.Chart:
    first = runs[0].span.nodes_before if runs else 0
    largest = max([first, *(run.span.nodes_after for run in runs)])
    last = max(len(runs), 1)

    def at(place: float, count: int) -> tuple[float, float]:
        return charts.x_at(place, last), charts.y_at(count / max(largest, 1))

    curve = [at(0, first), *(at(n, run.span.nodes_after) for n, run in enumerate(runs, 1))]
    effects = [abs(run.span.nodes_after - run.span.nodes_before) for run in runs]
    big = sorted(sorted(range(len(runs)), key=lambda place: -effects[place])[:BIG])
    points = []
    for place in big:
        span = runs[place].span
        if not effects[place]:
            continue
        about = f"{short(span.name)}: {span.nodes_before:,} to {counted(span.nodes_after, 'node')}"
        points.append(charts.Point(*at(place + 1, span.nodes_after), about))
    end = runs[-1].span.nodes_after if runs else first
    return charts.Chart(
        f"Nodes left after each pass, {counted(len(runs), 'run')}: from {first:,} to {end:,}",
        "passes in the order of the run",
        "nodes",
        charts.count_ticks(largest),
        tuple(points),
        charts.steps(curve),
        tuple(_bands(runs, last)),
    )


def _bands(runs: Sequence[TimelineRun], last: int) -> Iterator[tuple[float, float, str]]:
    """Yield the rounds of fixed points: x, width and name."""
    names = groups_of(runs)
    inner = (at for at, (a, b) in enumerate(pairwise(runs), 1) if a[1:] != b[1:])
    for start, end in pairwise([0, *inner, len(runs)]):
        if start < end and runs[start].round:
            x = charts.x_at(start, last)
            yield x, round(charts.x_at(end, last) - x, 1), _named(runs[start], names)


def _named(run: TimelineRun, names: Mapping[str, str]) -> str:
    """Return the name of a round: that of its group, and its number."""
    return f"{names[run.group]}{run.round}" if run.round else ""


def _group_table(runs: Sequence[TimelineRun]) -> Table | None:
    """Return the fixed points with their passes; None if there is none."""
    rows: list[list[str | int | None]] = []
    for text, name in groups_of(runs).items():
        passes = list(dict.fromkeys(run.span.name for run in runs if run.group == text))
        rounds = max(run.round for run in runs if run.group == text)
        rows.append([name, rounds, len(passes), short(", ".join(passes))])
    headers = ["group", "rounds", "passes", "their names"]
    return Table("Groups that run until they change nothing", headers, rows) if rows else None


def _time_bars(runs: Sequence[TimelineRun]) -> list[tuple[float, float, float, str]]:
    """Return a bar for each run: x, width, share of the longest, and its description."""
    longest = max((_own_seconds(run.span) for run in runs), default=0.0) or 1.0
    last = max(len(runs), 1)
    width = round(max(charts.x_at(1, last) - charts.x_at(0, last), 0.5), 2)
    return [
        (
            charts.x_at(place, last),
            width,
            round(_own_seconds(run.span) / longest, 4),
            f"{short(run.span.name)}: {milliseconds(_own_seconds(run.span))}",
        )
        for place, run in enumerate(runs)
    ]


def _own_seconds(span: Span) -> float:
    return max(0.0, span.seconds - sum(child.seconds for child in span.children))


def _run_table(runs: Sequence[TimelineRun], *, times: bool) -> Table:
    headers = ["#", "pass", "round", "outcome", "rewrites", "nodes", "reason"]
    rows: list[list[str | int | None]] = []
    names = groups_of(runs)
    for place, run in enumerate(runs, 1):
        span = run.span
        moved = span.nodes_after != span.nodes_before
        nodes = f"{span.nodes_before:,} → {span.nodes_after:,}" if moved else ""
        why = f"required by {span.needed_by}" if span.needed_by else span.reason
        rows.append([place, short(span.text), _named(run, names) or None, outcome_of(span)])
        rows[-1] += [len(span.rewrites), nodes, short(why)]
        if times:
            rows[-1].append(milliseconds(_own_seconds(span)))
    return Table("All runs of passes in order", [*headers, *(["time"] if times else [])], rows)


def outcome_of(span: Span) -> str:
    """Return what came of a pass in one or two words."""
    if span.outcome == "failed":
        return "failed"
    if span.undone:
        return "undone"
    return "changed" if span.changed else span.outcome


# --- each pass ------------------------------------------------------------------------------------


@dataclass
class _Total:
    """All runs of one pass together."""

    span: Span
    runs: int = 0
    rewrites: int = 0
    nodes: int = 0
    seconds: float = 0.0
    is_changed: bool = False
    errors: list[str] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    why: dict[str, None] = field(default_factory=dict)


def passes(runs: Sequence[TimelineRun], hide: Hide, *, times: bool) -> Section:
    """Return each pass that ran, with its law and what it did."""
    totals: dict[str, _Total] = {}
    for span, *_ in runs:
        if span.outcome == "skipped":
            continue
        total = totals.setdefault(span.text, _Total(span))
        total.runs += 1
        total.rewrites += len(span.rewrites)
        total.nodes += span.nodes_after - span.nodes_before
        total.seconds += _own_seconds(span)
        total.is_changed |= span.changed
        if span.error:
            total.errors.append(hide(span.error))
        total.found.update(dict.fromkeys(hide(note.reason) for note in span.found))
        reason = f"required by {span.needed_by}" if span.needed_by else span.reason
        total.why[reason] = None
    rows = [_described(total, times=times) for total in totals.values()]
    active = [row for row in rows if row["is_active"]]
    idle = [row for row in rows if not row["is_active"]]
    return Section("Passes", "passes.html.j2", {"active": active, "idle": idle, "times": times})


def reason_of(span: Span) -> str:
    """Return the description of a pass without its arguments and errors, a line a paragraph."""
    text = re.split(r"\n(?:Args|Raises):\n", span.info.doc)[0].strip()
    return visible(re.sub(r"(?<!\n)\n(?![\n ])", " ", text))


def _described(total: _Total, *, times: bool) -> dict[str, object]:
    info = total.span.info
    promise = "changes nothing" if info.analysis else Numerics(info.numerics).value
    return {
        "is_active": total.is_changed or bool(total.errors) or bool(total.found),
        "text": short(total.span.text),
        "name": info.name,
        "law": info.law,
        "doc": reason_of(total.span),
        "level": "opt-in" if info.opt_level is None else str(info.opt_level),
        "promise": promise + (", interface" if info.changes_interface else ""),
        "runs": total.runs,
        "rewrites": total.rewrites,
        "nodes": _with_sign(total.nodes),
        "time": milliseconds(total.seconds) if times else "",
        "errors": total.errors,
        "found": [short(text) for text in list(total.found)[:MOST_NAMES]],
        "why": "; ".join(filter(None, total.why)),
    }


def _with_sign(nodes: int) -> str:
    sign = "+" if nodes > 0 else "-"
    return f"{sign}{counted(abs(nodes), 'node')}" if nodes else ""


# --- skipped and declined -------------------------------------------------------------------------


def skipped(runs: Sequence[TimelineRun]) -> Section | None:
    """Return the passes that did not run, by reason; None if all ran.

    A reason of several passes is a group; the others are named with each pass.
    """
    groups: dict[str, dict[str, str]] = {}
    for span, *_ in runs:
        if span.outcome == "skipped":
            groups.setdefault(short(span.reason), {})[short(span.text)] = span.info.law
    if not groups:
        return None
    single = [
        (text, reason, law)
        for reason, laws in groups.items()
        if len(laws) < FEW
        for text, law in laws.items()
    ]
    many = {reason: laws for reason, laws in groups.items() if len(laws) >= FEW}
    total = sum(map(len, groups.values()))
    return Section(
        "Skipped passes", "skipped.html.j2", {"single": single, "groups": many, "total": total}
    )


def declined(runs: Sequence[TimelineRun]) -> Section | None:
    """Return the nodes that passes declined, by pass and reason; None if there are none."""
    groups: dict[tuple[str, str, str], dict[str, str]] = {}
    rewritten = {
        (span.text, state.label)
        for span, *_ in runs
        for rewrite in span.rewrites
        for state in rewrite.before
    }
    for span, *_ in runs:
        for note in span.missed:
            if (span.text, note.label) not in rewritten:
                key = span.text, note.op_type, note.template
                groups.setdefault(key, {})[note.label] = note.reason
    if not groups:
        return None
    left = NAME_BUDGET
    by_pass: dict[str, list[dict[str, object]]] = {}
    for (text, op_type, template), nodes in groups.items():
        names: list[tuple[str, str]] = []
        for label, reason in list(nodes.items())[:MOST_NAMES]:
            own = "" if reason == template else short(reason)
            left -= len(own) + min(len(label), 200)
            if left < 0:
                break
            names.append((short(label), own))
        reasons = set(nodes.values())
        about = short(next(iter(reasons)) if len(reasons) == 1 else template)
        entry = {"op": op_type, "reason": about, "count": len(nodes), "nodes": names}
        if len(reasons) == 1:
            entry["nodes"] = [(name, "") for name, _ in names]
        by_pass.setdefault(text, []).append(entry)
    return Section("Declined nodes", "declined.html.j2", {"by_pass": by_pass})


def operators(before: dict[str, int], after: dict[str, int]) -> Table:
    """Return the operators before and after, those that changed first."""
    names = dict.fromkeys((*before, *after))
    rows = [(name, before.get(name, 0), after.get(name, 0)) for name in names]
    rows.sort(key=lambda row: (row[1] == row[2], -abs(row[2] - row[1]), row[0]))
    cells = [(short(name), was, now, change(was, now)) for name, was, now in rows]
    return Table("Operators", ("operator", "before", "after", "change"), cells)
