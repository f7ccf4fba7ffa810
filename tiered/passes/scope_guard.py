"""Restrict the rewrites of a function pass to its scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tiered.graph import Edit, Model, Node, Value
from tiered.graph.core.edit import NODE_EDITS, Entry
from tiered.passes.pass_run import Allows, PassRun
from tiered.rewriter import Skip

OUTSIDE = Skip("not wholly inside the scope")


class Inside:
    """The nodes that one run may touch: those inside the scope at its beginning, and its own.

    They are collected at the beginning, as a pass may rename or remove nodes of the scope.
    """

    def __init__(self, model: Model, allows: Allows) -> None:
        self._first_new = model.peek_serial()
        self._nodes = {node.id for graph in model.graphs() for node in graph.nodes if allows(node)}

    def holds(self, node: Node) -> bool:
        """Return whether the run may touch a node."""
        return node.id >= self._first_new or node.id in self._nodes

    def holds_all(self, edits: Iterable[Entry]) -> bool:
        """Return whether edits touch only nodes inside, and the consumers of their values."""
        return all(map(self._holds_edit, edits))

    def _holds_edit(self, entry: Entry) -> bool:
        edit, subject, *rest = entry
        if edit is Edit.SET_CONSTANT:
            return all(self.holds(use.node) for use in subject.users)
        if edit not in NODE_EDITS or self.holds(subject):
            return edit is not Edit.EXCHANGE_OUTPUTS or self.holds(rest[1])
        # A consumer outside may get another operand if the old one was produced inside.
        producer = rest[1].producer if edit is Edit.SET_INPUT and rest[1] is not None else None
        return producer is not None and self.holds(producer)


@contextmanager
def scoped(model: Model, run: PassRun) -> Iterator[Inside | None]:
    """Within the block, undo each `graph.rewrite` with edits outside the scope of the run."""
    if run.allows is None:
        yield None
        return
    inside = Inside(model, run.allows)

    def accepts(anchor: Node | Value, edits: Iterable[Entry]) -> bool:
        if inside.holds_all(edits):
            return True
        node = anchor if isinstance(anchor, Node) else anchor.producer
        if node is None:
            run.note("missed", OUTSIDE)
        else:
            run.missed(node, OUTSIDE)
        return False

    gate = model.gate
    before, gate.accepts = gate.accepts, accepts
    try:
        yield inside
    finally:
        gate.accepts = before
