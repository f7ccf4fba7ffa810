"""An instrument that records each rewrite: its pass, its place and the nodes it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.journal import Edit, dirty_nodes
from tiered.pipeline.instruments.tracing.changes import Rewind

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
        if record.number != self.number:
            return
        self.info, self.pass_text, self.is_open = info, info.name, True
        self.law, self.anchor, self.graph = record.law, record.node_name, record.graph.name
        rewind = Rewind(record.edits)
        for _, was, is_ in rewind.texts():
            self.before += [was] if was else []
            self.after += [is_] if is_ else []
        self.places = list(dict.fromkeys(_places(record, rewind)))

    def on_result(self, model: Model, result: PassResult) -> None:
        # Passes that ran inside have their results before.
        if self.is_open and result.info is self.info:
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
        holders = [inner.owner] if inner.owner is not None else _calls(inner)
        for holder in holders:
            if holder.owner.is_main:
                yield from (value.name for value in holder.outputs if value is not None)
            elif id(holder.owner) not in seen:
                seen.add(id(holder.owner))
                pending.append(holder.owner)


def _calls(function: Graph) -> list[Node]:
    id_ = getattr(function, "id", None)
    return [
        node
        for graph in function.model.graphs()
        for node in graph.nodes
        if node.callee == id_
    ]
