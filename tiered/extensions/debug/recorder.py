"""An instrument that records each rewrite: its pass, its place and the nodes it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tiered.graph import Model, RewriteRecord, Stamp
from tiered.graph.core.edit import Edit
from tiered.graph.core.journal import dirty_nodes
from tiered.passes.interface.pass_info import PassInfo
from tiered.pipeline.instruments.tracing.changes import Rewind
from tiered.runtime.external_data import with_files
from tiered.verify.baseline import RunnableModel
from tiered.verify.live_extract import PartEdits, advance, part_of
from tiered.verify.part_extraction import GraphPart, cut

if TYPE_CHECKING:
    from tiered.graph import Graph, Model, Node, RewriteRecord
    from tiered.passes.interface.pass_info import PassInfo, PassResult


class RewriteFacts:
    """The record of the rewrite with one number.

    Attributes:
        pass_text: its pass, with options and scope; `info` has its facts.
        law, anchor, graph: of the rewrite.
        before, after: the nodes that it touched, as text, as they were and as it left them.
        places: values of the main graph that these nodes made or read, before and after.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.info: PassInfo | None = None
        self.pass_text = ""
        self.law = self.anchor = self.graph = ""
        self.before: list[str] = []
        self.after: list[str] = []
        self.places: list[str] = []
        self.is_open = False

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        self.info, self.pass_text, self.is_open = info, info.name, True
        self.law, self.anchor, self.graph = record.law, record.node_name, record.graph.name
        rewind = Rewind(record.edits)
        for _, was, is_ in rewind.texts():
            self.before += [was] if was else []
            self.after += [is_] if is_ else []
        self.places = list(dict.fromkeys(_places(record, rewind)))

    def on_result(self, model: Model, result: PassResult) -> None:
        # Passes that ran inside have their results before.
        if result.info is self.info:
            self.pass_text, self.is_open = result.text, False


class Recorder:
    """Records every rewrite, in `by_number`."""

    def __init__(self) -> None:
        self.by_number: dict[int, RewriteFacts] = {}
        self._waiting: list[RewriteFacts] = []

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        seen = self.by_number[record.number] = RewriteFacts(record.number)
        seen.on_rewrite(model, info, record)
        self._waiting.append(seen)

    def on_result(self, model: Model, result: PassResult) -> None:
        for seen in self._waiting:
            seen.on_result(model, result)
        self._waiting = [seen for seen in self._waiting if seen.is_open]


def _places(record: RewriteRecord, rewind: Rewind) -> Iterator[str]:
    """Yield the values of the main graph by which the nodes of a rewrite are found again."""
    for graph in _graphs(record):
        yield from _owner_outputs(graph)
    for change in rewind.changes():
        for state in change:
            yield from filter(None, state.outputs if state is not None else ())
    for node in dirty_nodes(entry for entry in record.edits if entry[0] is not Edit.SET_TYPE):
        yield from (value.name for value in node.outputs if value is not None)
    for entry in record.edits:
        if entry[0] is Edit.SET_TYPE:
            yield entry[1].name


def _graphs(record: RewriteRecord) -> Sequence[Graph]:
    touched: dict[int, Graph] = {id(record.graph): record.graph}
    for entry in record.edits:
        graph = getattr(entry[1], "graph", None)
        if graph is not None:
            touched.setdefault(id(graph), graph)
    return list(touched.values())


def _owner_outputs(graph: Graph) -> Iterator[str]:
    """Yield the outputs of the main-graph nodes that own a body or call a function."""
    pending, seen = [graph], {id(graph)}
    while pending:
        inner = pending.pop()
        if inner.is_main:
            continue
        holders = [inner.parent_node] if inner.parent_node is not None else _calls(inner)
        for holder in holders:
            if holder.owner.is_main:
                yield from (value.name for value in holder.outputs if value is not None)
            elif id(holder.owner) not in seen:
                seen.add(id(holder.owner))
                pending.append(holder.owner)


def _calls(function: Graph) -> list[Node]:
    id_ = getattr(function, "id", None)
    return [node for graph in function.model.graphs() for node in graph.nodes if node.callee == id_]


# --- The edits of each rewrite of a run, to rebuild the model after any rewrite without a new run -


class History:
    """An instrument that records the edits of a model, rewrite by rewrite.

    Attributes:
        is_whole: whether all rewrites were recorded; not if some were undone.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self._start: GraphPart | None = None
        self._now: GraphPart | None = None
        self._stamp: Stamp | None = None
        self._steps: list[PartEdits] = []
        self._folder = ""
        # The part that was asked for last, and the number of rewrites before it.
        self._asked: tuple[int, GraphPart] | None = None

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if self._start is None:
            self._folder, self._stamp = model.folder, model.journal.stamp()
            self._start = part_of(model)
            self._now = self._start.copy()

    def on_rewrite(self, model: Model, info: PassInfo, record: RewriteRecord) -> None:
        if not self.is_whole or self._stamp is None or self._now is None:
            return
        journal = model.journal
        step = None
        if journal.kept_since(self._stamp) == self._stamp.length:
            step = advance(self._now, model, journal.since(self._stamp.length))
        if step is None:
            self.is_whole = False
            return
        self._stamp = journal.stamp()
        self._steps.append(step)

    def model_after(self, number: int) -> RunnableModel:
        """Return the model after `number` rewrites.

        Raises:
            ModelError: a file of weights is not as it was.
        """
        part = self._part(number)
        proto = cut(part, part.nodes, {}, list(part.outputs), list(part.inputs))
        return RunnableModel(proto, with_files(proto, self._folder))

    def _part(self, number: int) -> GraphPart:
        assert self._start is not None
        known, part = 0, self._start
        if self._asked is not None and self._asked[0] <= number:
            known, part = self._asked
        part = part.copy()
        for step in self._steps[known:number]:
            step.apply(part)
        self._asked = number, part
        return part
