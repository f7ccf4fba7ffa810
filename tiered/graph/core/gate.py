"""The gate numbers every rewrite of a run, and can stop after a number of them.

Bisection, limits, provenance and statistics use these numbers. A number means the same rewrite in
every run of the same pipeline on the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tiered.graph.core.edit import Entry
from tiered.graph.core.marks import mark_against_edits
from tiered.graph.core.provenance import note_sources

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

    Filter = Callable[[Node | Value, Sequence[Entry]], bool]


class RewriteRecord(NamedTuple):
    """One rewrite that passed the gate: its number, pass, law, anchor and edits."""

    number: int
    pass_name: str
    law: str
    graph: Graph
    node_name: str
    edits: Sequence[Entry]


class Gate:
    """Numbers rewrites from 1, and rejects those beyond `limit`.

    Attributes:
        accepts: called with the anchor and the edits of each `graph.rewrite` block; a block that it
            rejects is undone and gets no number.
        chosen: if set, called for every rewrite with its pass and its anchor (a node, or a graph
            for a whole pass); returns whether the rewrite may be made.
        at: the anchor of the rewrite that is being tried.
        refusal: set while a rule runs; returns why the target has no operator (graph, op_type,
            domain), None if it may have it.
        on_mark: called with the anchor and the reason when a block is undone because a node is
            marked (`tiered.graph.core.marks`).
    """

    __slots__ = (
        *("accepts", "at", "chosen", "count", "limit", "listeners", "on_mark", "pass_name"),
        *("refusal", "refused"),
    )

    def __init__(self) -> None:
        self.count = 0
        self.limit: int | None = None
        self.accepts: Filter | None = None
        self.chosen: Callable[[tuple[str, str]], bool] | None = None
        self.at = ""
        self.on_mark: Callable[[Node | Value, str], None] | None = None
        self.refused = 0
        self.pass_name = ""
        self.refusal: Callable[[Graph, str, str], str | None] | None = None
        self.listeners: list[Callable[[RewriteRecord], None]] = []

    @property
    def is_open(self) -> bool:
        """Return whether one more rewrite may pass."""
        return self.limit is None or self.count < self.limit

    def is_shut(self) -> bool:
        """Return whether the limit is reached."""
        return not self.is_open

    def lets(self, anchor: str) -> bool:
        """Return whether one more rewrite may pass, and this one is chosen."""
        if self.limit is not None and self.count >= self.limit:
            return False
        return self.chosen is None or self.chosen((self.pass_name, anchor))

    def refuse(self) -> None:
        """Count a rewrite that was undone because the gate rejected it."""
        self.refused += 1

    def passed(
        self,
        graph: Graph,
        law: str,
        node_name: str,
        edits: Sequence[Entry],
        sources: Sequence[Node] = (),
    ) -> None:
        """Number a rewrite, record the origins of its nodes, and call the listeners."""
        self.count += 1
        note_sources(edits, sources)
        if self.listeners:
            record = RewriteRecord(self.count, self.pass_name, law, graph, node_name, edits)
            for listener in self.listeners:
                listener(record)


class RewriteBlock:
    """The block of a `graph.rewrite`: its edits are one rewrite, if it may pass."""

    __slots__ = ("_anchor", "_graph", "_label", "_law", "_mark")

    def __init__(self, graph: Graph, law: str, anchor: Node | Value) -> None:
        self._graph = graph
        self._law = law
        self._anchor = anchor

    def __enter__(self) -> None:
        model, self._label = self._graph.model, self._anchor.label
        self._mark, model.gate.at = len(model.journal.entries), self._label

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        model, mark = self._graph.model, self._mark
        gate = model.gate
        if kind is not None:
            # A rewrite is done whole or not at all; `gate.at` is where it failed.
            model.undo_to(mark)
            return
        gate.at = ""
        edits = model.journal.entries[mark:]
        if not edits:
            return
        marked = mark_against_edits(edits)
        if marked:
            model.undo_to(mark)
            if gate.on_mark is not None:
                gate.on_mark(self._anchor, marked)
        elif gate.accepts is not None and not gate.accepts(self._anchor, edits):
            model.undo_to(mark)
        elif gate.lets(self._label):
            if type(self._graph)._inherit_names(edits):
                edits = model.journal.entries[mark:]
            gate.passed(self._graph, self._law, self._label, edits)
        else:
            model.undo_to(mark)
            gate.refuse()
