"""Trace: records all that passes do, and answers questions afterwards."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.passes.pass_run import memory_of
from tiered.pipeline.instruments.stacks import Stacks
from tiered.pipeline.instruments.statistics import count_nodes
from tiered.pipeline.instruments.tracing import trace_file
from tiered.pipeline.instruments.tracing.changes import Rewind
from tiered.pipeline.instruments.tracing.events import Rewrite, Span
from tiered.pipeline.instruments.tracing.origin import Origin, origin_of
from tiered.pipeline.instruments.tracing.surroundings import surroundings_of
from tiered.pipeline.instruments.tracing.tree import Shown, tree_of
from tiered.support.amounts import counted
from tiered.support.errors import UsageError
from tiered.support.whole_files import write_chunks

if TYPE_CHECKING:
    from tiered.graph import Model, Node, RewriteRecord
    from tiered.passes.interface.pass_info import Decision, PassInfo, PassResult


class Trace:
    """Records every pass, skip, rewrite, remark and dependency, with times.

    Give it as an instrument or as `trace=`; both are the same. It holds plain data, so it keeps no
    model alive, and may watch many models in many threads.

    Attributes:
        spans: the direct calls, in order; the passes within them are their children.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._began = time.perf_counter()
        self._open: Stacks[Span] = Stacks()
        # By model: the closed span that waits for its result.
        self._closed: dict[int, Span] = {}
        self._lock = threading.Lock()

    # --- recording --------------------------------------------------------------------------------

    def __call__(self, model: Model, info: PassInfo, is_before: bool) -> None:
        """Record as TVM's trace callable would: passes and times only."""
        if is_before:
            self.run_before_pass(model, info)
        else:
            self.run_after_pass(model, info)

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        span = self._new(model, info)
        span.nodes_before = count_nodes(model)
        self._open.push(model, span)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        span = self._close(model)
        span.outcome = "ran"

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        span = self._close(model)
        span.outcome = "failed"
        span.error = f"{type(error).__name__}: {error}"
        span.undo()

    def on_skip(self, model: Model, info: PassInfo, decision: Decision) -> None:
        span = self._new(model, info)
        span.outcome, span.reason = "skipped", decision.reason
        span.nodes_before = span.nodes_after = count_nodes(model)
        self._closed[id(model)] = span

    def on_result(self, model: Model, result: PassResult) -> None:
        span = self._closed.pop(id(model), None)
        if span is not None and span.info is result.info:
            span.complete(result)

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        span = self._open.top(model)
        if span is None:
            return
        rewind = Rewind(record.edits)
        span.rewrites.append(
            Rewrite(
                record.number,
                record.pass_name,
                record.law,
                record.graph.name,
                record.node_name,
                tuple(rewind.changes()),
                tuple(rewind.added),
                tuple(rewind.removed),
                time.perf_counter() - self._began,
                around=surroundings_of(rewind),
            )
        )

    def _new(self, model: Model, info: PassInfo) -> Span:
        now = time.perf_counter() - self._began
        span = Span(info, model.label, memory_of(model).serial, now, text=info.name)
        above = self._open.top(model)
        if above is not None:
            above.children.append(span)
        else:
            with self._lock:
                self.spans.append(span)
        return span

    def _close(self, model: Model) -> Span:
        span = self._open.pop(model)
        span.seconds = time.perf_counter() - self._began - span.started
        span.nodes_after = count_nodes(model)
        self._closed[id(model)] = span
        return span

    # --- reading ----------------------------------------------------------------------------------

    def walk(self) -> Iterator[Span]:
        """Yield every span, each before its children."""
        for span in self.spans:
            yield from span.walk()

    def of(self, pass_name: str) -> list[Span]:
        """Return the spans of one pass, in order."""
        return [span for span in self.walk() if span.name == pass_name]

    @property
    def rewrites(self) -> list[Rewrite]:
        """Every rewrite, in the order in which they were made; undone ones too."""
        found = (rewrite for span in self.walk() for rewrite in span.rewrites)
        return sorted(found, key=lambda rewrite: rewrite.at)

    def changes(self, pass_name: str) -> list[Rewrite]:
        """Return the rewrites of a pass that were not undone."""
        return [rewrite for rewrite in self._kept() if rewrite.pass_name == pass_name]

    def touching(self, node: Node | str) -> list[Rewrite]:
        """Return the rewrites that touched a node, under all its names; undone ones too.

        Args:
            node: a node, or its name before or after the run.
        """
        if not isinstance(node, str):
            return [r for r in self.rewrites if _has_id(r, node.id)]
        named = [rewrite for rewrite in self.rewrites if rewrite.touches(node)]
        ids = {s.id for r in named for s in (*r.before, *r.after) if s.label == node}
        return [r for r in self.rewrites if any(_has_id(r, number) for number in ids)]

    def origin(self, node: Node | str) -> Origin:
        """Return the origin of a node: the rewrite that made it, its nodes, and their origins.

        Args:
            node: a node, or its name after the run.
        """
        return origin_of(node, list(self._kept()))

    def _kept(self) -> Iterator[Rewrite]:
        return (rewrite for rewrite in self.rewrites if not rewrite.undone)

    def tree(
        self,
        *,
        rewrites: int = 3,
        skipped: bool = True,
        idle: bool = False,
        remarks: bool = False,
    ) -> str:
        """Return everything as a tree.

        Args:
            rewrites: how many of each pass are shown.
            skipped: whether passes that did not run are shown, with the reason.
            idle: whether passes that changed nothing, and opt-in passes that were not asked for,
                are shown each on a line of its own.
            remarks: whether the nodes that a pass declined are shown, with the reason.
        """
        return "\n".join(tree_of(self.spans, Shown(rewrites, skipped, idle, remarks)))

    def __str__(self) -> str:
        return self.tree()

    def to_html(self, *, times: bool = True) -> str:
        """Return the trace as a page of one file, which a browser opens without a network.

        Args:
            times: whether times are on the page; without them, the same run makes the same bytes.
        """
        from tiered.pipeline.instruments.run_page.page import run_page

        return run_page(self.spans, times=times)

    def _repr_html_(self) -> str:
        """Return the passes that changed something as a table, for a notebook."""
        from tiered.support.pages.render import fragment, short
        from tiered.support.pages.sections import Table

        spans = [span for span in self.walk() if span.changed and not span.is_pipeline]
        rows = [
            (short(span.text), len(span.rewrites), f"{span.nodes_before} → {span.nodes_after}")
            for span in spans
        ]
        note = "`to_html()` returns the whole page."
        table = Table("Passes that changed something", ("pass", "rewrites", "nodes"), rows, note)
        return fragment(f"Trace: {counted(len(self.rewrites), 'rewrite')}", table)

    # --- saving -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace: `.jsonl` as JSON lines, `.json` for Perfetto and chrome://tracing.

        Raises:
            UsageError: another suffix.
            ModelError: the file cannot be written.
        """
        name = os.fspath(path)
        if name.endswith(".jsonl"):
            write_chunks(name, trace_file.json_lines(self.spans))
        elif name.endswith(".json"):
            write_chunks(name, trace_file.chrome(self.spans))
        else:
            raise UsageError(
                f"a trace is saved as .jsonl (JSON lines) or .json (Chrome, Perfetto), not {name!r}"
            )


def _has_id(rewrite: Rewrite, number: int) -> bool:
    return any(state.id == number for state in (*rewrite.before, *rewrite.after))
