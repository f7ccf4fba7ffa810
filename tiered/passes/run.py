"""What one run of one pass is told, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tiered.context import SaidKind
from tiered.errors import UsageError
from tiered.graph import Node, Stamp, Value
from tiered.passes.pass_info import NodeNote, Place, Runnable
from tiered.passes.report import note_of
from tiered.rewriter import Skip

Allows = Callable[[Node], bool]


def edited_by(outcome: object) -> object:
    """Return the model or graph that a pass says it edited: what it returned, or holds."""
    return getattr(outcome, "graph_module", outcome)


class PassRun:
    """One run of one pass.

    Attributes:
        pass_: the pass.
        place: where it stands.
        looked: the moment since which there may be something new for it; None looks everywhere.
        allows: which nodes it may rewrite; None for all.
        changed: the names of the passes that changed something: those in a pipeline, or itself.
        applied: the node and the law of each rewrite.
    """

    def __init__(self, pass_: Runnable, place: Place, allows: Allows | None = None) -> None:
        self.pass_ = pass_
        self.place = place
        self.looked: Stamp | None = None
        self.allows = allows
        self.changed: list[str] = []
        self.applied: list[tuple[str, str]] = []
        self._missed: dict[Node, Skip] = {}
        self._said: list[tuple[SaidKind, Node | None, Skip | str]] = []

    def missed(self, node: Node, reason: Skip) -> None:
        """Note a node that was left alone."""
        self._missed[node] = reason

    def marked(self, anchor: Node | Value, reason: str) -> None:
        """Note a rewrite that was undone because of a mark."""
        node = anchor if isinstance(anchor, Node) else anchor.producer
        if node is None:
            self.say("missed", Skip(reason))
        else:
            self.missed(node, Skip(reason))

    def say(self, kind: SaidKind, reason: Skip | str, node: Node | None = None) -> None:
        """Note what was declined or found out, of a node or of none."""
        self._said.append((kind, node, reason))

    def returned(self, outcome: object, subject: object) -> None:
        """Take what the function of the pass returned: nothing, a Skip, or what it was called with.

        That may be in a result as ExecuTorch has it; whether it changed, the journal knows.

        Raises:
            UsageError: it returned something else, which would be lost.
        """
        if isinstance(outcome, Skip):
            self.say("missed", outcome)
        elif outcome is not None and edited_by(outcome) is not subject:
            raise UsageError(
                f"{self.pass_.name} returned a {type(outcome).__name__}: a pass edits in place and "
                "returns None or a Skip (tiered.proto_pass lifts functions that return a model)"
            )

    def notes(self) -> dict[str, Any]:
        """Return what a `PassResult` keeps, without the nodes that are gone by now."""
        notes: dict[str, list[NodeNote]] = {"missed": [], "found": []}
        for node, skip in self._missed.items():
            if node.graph is not None:
                notes["missed"].append(_note(node, skip))
        for kind, subject, reason in self._said:
            notes[kind].append(_note(subject, reason))
        notes["applied"] = [NodeNote("", label, law, law) for label, law in self.applied]
        return {kind: tuple(of_kind) for kind, of_kind in notes.items() if of_kind}


def _note(node: Node | None, reason: Skip | str) -> NodeNote:
    return note_of(node.op_type, node.label, reason) if node else note_of("", "", reason)
