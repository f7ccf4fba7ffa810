"""A trace as a tree of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tiered.passes.interface.pass_info import NodeNote
from tiered.passes.policy.decide import OPT_IN
from tiered.pipeline.instruments.tracing.events import Span
from tiered.support.amounts import counted


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts of a trace to show; see `Trace.tree`."""

    rewrites: int
    skipped: bool
    idle: bool
    remarks: bool


def tree_of(spans: Sequence[Span], shown: Shown) -> Iterator[str]:
    """Yield the lines of the tree."""
    for span in spans:
        yield from _lines(span, "", "", shown)


def _lines(span: Span, first: str, rest: str, shown: Shown) -> Iterator[str]:
    yield first + _head(span)
    rows = list(_rows(span, shown))
    for text in _notes(span, shown):
        yield f"{rest}{'│' if rows else ' '}    {text}"
    for row in rows:
        branch, below = ("└─ ", "   ") if row is rows[-1] else ("├─ ", "│  ")
        if isinstance(row, Span):
            yield from _lines(row, rest + branch, rest + below, shown)
        else:
            yield f"{rest}{branch}{row}"


def _rows(span: Span, shown: Shown) -> Iterator[Span | str]:
    """Yield the rows below a span; consecutive passes without news are one line."""
    kept = [c for c in span.children if shown.skipped or c.outcome != "skipped"]
    for is_quiet, group in groupby(kept, key=lambda child: _is_quiet(child, shown)):
        children = list(group)
        if not is_quiet or len(children) == 1:
            yield from children
            continue
        idle = [child for child in children if child.outcome != "skipped"]
        parts = []
        if idle:
            seconds = sum(child.seconds for child in idle)
            count = counted(len(idle), "pass", "passes")
            parts.append(f"{count} that changed nothing  {seconds * 1e3:.2f} ms")
        if len(idle) < len(children):
            parts.append(counted(len(children) - len(idle), "opt-in pass", "opt-in passes"))
        yield "; ".join(parts)


def _is_quiet(span: Span, shown: Shown) -> bool:
    """Return whether a pass changed nothing, or is opt-in and was not asked for."""
    is_parked = span.outcome == "skipped" and span.reason.startswith(OPT_IN)
    return _is_idle(span, shown) or (not shown.idle and is_parked)


def _is_idle(span: Span, shown: Shown) -> bool:
    has_news = span.changed or span.found or span.children or (shown.remarks and span.missed)
    return not shown.idle and span.outcome == "ran" and not has_news


def _head(span: Span) -> str:
    name = span.text if len(span.text) <= 60 or not span.is_pipeline else span.name
    if span.outcome == "skipped":
        return f"{name}  skipped: {span.reason}"
    parts = [name, f"{span.seconds * 1e3:.2f} ms"]
    if span.rewrites:
        parts.append(counted(len(span.rewrites), "rewrite"))
    if span.nodes_after != span.nodes_before:
        parts.append(f"{span.nodes_before} -> {counted(span.nodes_after, 'node')}")
    if span.needed_by:
        parts.append(f"needed by {span.needed_by}")
    if span.outcome == "failed":
        first, *_ = span.error.splitlines() or [""]
        parts.append(f"failed and undone: {first}")
    elif span.undone:
        parts.append("undone")
    elif span.outcome == "running":
        parts.append("still running")
    return "  ".join(parts)


def _notes(span: Span, shown: Shown) -> Iterator[str]:
    for rewrite in span.rewrites[: shown.rewrites]:
        yield str(rewrite)
    rest = len(span.rewrites) - shown.rewrites
    if shown.rewrites and rest > 0:
        yield f"and {rest} more"
    yield from (note.reason for note in span.found)
    if shown.remarks:
        yield from _declined(span.missed)


def _declined(notes: Sequence[NodeNote]) -> Iterator[str]:
    counted = Counter((note.op_type, note.template) for note in notes)
    reasons = {(note.op_type, note.template): note.reason for note in notes}
    for key, count in counted.items():
        yield f"{count} {key[0]} unchanged: {reasons[key]}"
