"""A trace as a tree of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tiered.passes.interface.pass_info import NodeNote
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
    """Yield the rows below a span; consecutive passes that changed nothing are one line."""
    for is_idle, group in groupby(span.children, key=lambda child: _is_idle(child, shown)):
        children = [c for c in group if shown.skipped or c.outcome != "skipped"]
        if not is_idle or len(children) == 1:
            yield from children
        elif children:
            seconds = sum(child.seconds for child in children)
            yield f"{len(children)} passes that changed nothing  {seconds * 1e3:.2f} ms"


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
        parts.append(f"failed and undone: {span.error.splitlines()[0]}")
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
