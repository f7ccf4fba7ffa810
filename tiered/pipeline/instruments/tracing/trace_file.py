"""A trace as a file: JSON lines, or what Perfetto and chrome://tracing open.

JSON lines: one object for each span, then for each of its rewrites, in the order of the run.
    {"event": "pass", "id", "parent" (an id or null), "name", "text", "kind", "opt_level", "model",
     "started", "seconds", "outcome", "reason", "needed_by", "error", "undone", "changed", "edits",
     "nodes": [before, after], "missed": [{"op", "node", "reason"}], "found": [...]}
    {"event": "rewrite", "pass" (an id), "number", "law", "graph", "anchor", "at", "undone",
     "changes": [{"before": node or null, "after": node or null}], "added", "removed"}
A node is {"id", "op", "name", "inputs", "outputs"}; times are seconds since the trace began.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from tiered.passes.interface.pass_info import NodeNote
from tiered.pipeline.instruments.tracing.events import Rewrite, Span, as_data


def json_lines(spans: Sequence[Span]) -> Iterator[str]:
    """Yield the lines of a trace as JSON lines."""
    numbers = itertools.count(1)
    for span in spans:
        yield from (f"{json.dumps(entry)}\n" for entry in _entries(span, None, numbers))


def _entries(span: Span, parent: int | None, numbers: Iterator[int]) -> Iterator[dict[str, Any]]:
    number = next(numbers)
    yield {"event": "pass", "id": number, "parent": parent, **_span(span)}
    for rewrite in span.rewrites:
        yield {"event": "rewrite", "pass": number, **_rewrite(rewrite)}
    for child in span.children:
        yield from _entries(child, number, numbers)


def _span(span: Span) -> dict[str, Any]:
    return {
        "name": span.name,
        "text": span.text,
        "kind": span.info.kind,
        "opt_level": span.info.opt_level,
        "model": span.model,
        "started": span.started,
        "seconds": span.seconds,
        "outcome": span.outcome,
        "reason": span.reason,
        "needed_by": span.needed_by,
        "error": span.error,
        "undone": span.undone,
        "changed": span.changed,
        "edits": span.edits,
        "nodes": [span.nodes_before, span.nodes_after],
        "missed": [_note(note) for note in span.missed],
        "found": [_note(note) for note in span.found],
    }


def _note(note: NodeNote) -> dict[str, str]:
    return {"op": note.op_type, "node": note.label, "reason": note.reason}


def _rewrite(rewrite: Rewrite) -> dict[str, Any]:
    return {
        "number": rewrite.number,
        "law": rewrite.law,
        "graph": rewrite.graph,
        "anchor": rewrite.anchor,
        "at": rewrite.at,
        "undone": rewrite.undone,
        "changes": [
            {"before": as_data(change.before), "after": as_data(change.after)}
            for change in rewrite.changes
        ],
        "added": list(rewrite.added),
        "removed": list(rewrite.removed),
    }


def chrome(spans: Sequence[Span]) -> Iterator[str]:
    """Yield the text of a trace in the Trace Event Format, one event a line."""
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    before = ""
    for span in spans:
        for event in _events(span):
            yield f"{before}{json.dumps(event)}"
            before = ",\n"
    yield "\n]}\n"


def _events(span: Span) -> Iterator[dict[str, Any]]:
    if span.outcome == "skipped":
        yield _instant(f"skipped {span.name}", "skip", span, span.started, reason=span.reason)
        return
    details = _span(span)
    for key in ("name", "started", "seconds", "missed", "found"):
        del details[key]
    yield {
        "name": span.name,
        "cat": span.info.kind,
        "ph": "X",
        "ts": span.started * 1e6,
        "dur": span.seconds * 1e6,
        "pid": 1,
        "tid": span.model_number,
        "args": {**details, "rewrites": len(span.rewrites), "declined": len(span.missed)},
    }
    for rewrite in span.rewrites:
        nodes = {
            "before": [str(state) for state in rewrite.before],
            "after": [str(state) for state in rewrite.after],
        }
        title = f"#{rewrite.number} {rewrite.law}"
        yield _instant(title, "rewrite", span, rewrite.at, anchor=rewrite.anchor, **nodes)
    for child in span.children:
        yield from _events(child)


def _instant(title: str, category: str, span: Span, at: float, **details: Any) -> dict[str, Any]:
    return {
        "name": title,
        "cat": category,
        "ph": "i",
        "s": "t",
        "ts": at * 1e6,
        "pid": 1,
        "tid": span.model_number,
        "args": details,
    }
