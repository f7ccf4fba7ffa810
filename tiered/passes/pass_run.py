"""One run of one pass: its scope and its notes; and the memory of a model between runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from tiered.context import NoteKind
from tiered.graph import Model, Node, Stamp, Value
from tiered.passes.interface.pass_info import NodeNote, Place, Runnable
from tiered.passes.interface.report import note_of
from tiered.rewriter import Skip, Unable
from tiered.support.errors import UsageError

Allows = Callable[[Node], bool]


def edited_by(outcome: object) -> object:
    """Return the model or graph that a pass returned, alone or in an ExecuTorch result."""
    return getattr(outcome, "graph_module", outcome)


class PassRun:
    """One run of one pass.

    Attributes:
        pass_: the pass.
        place: its place in the pipeline.
        looked: the stamp of its last complete look at the model; None looks everywhere.
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
        self._notes: list[tuple[NoteKind, Node | None, Skip | str]] = []

    def missed(self, node: Node, reason: Skip) -> None:
        """Note a node that was left alone."""
        self._missed[node] = reason

    def marked(self, anchor: Node | Value, reason: str) -> None:
        """Note a rewrite that was undone because of a mark."""
        node = anchor if isinstance(anchor, Node) else anchor.producer
        if node is None:
            self.note("missed", Skip(reason))
        else:
            self.missed(node, Skip(reason))

    def note(self, kind: NoteKind, reason: Skip | str, node: Node | None = None) -> None:
        """Note a remark or a declined rewrite, of a node or of none."""
        self._notes.append((kind, node, reason))

    def returned(self, outcome: object, subject: object) -> None:
        """Check the result of the function of the pass: None, a Skip, or its own argument.

        The argument may be in a result as in ExecuTorch; the journal knows whether it changed.

        Raises:
            UsageError: it returned something else, which would be lost.
        """
        if isinstance(outcome, Skip):
            self.note("missed", outcome)
        elif outcome is not None and edited_by(outcome) is not subject:
            raise UsageError(
                f"{self.pass_.name} returned an object of type {type(outcome).__name__}: a pass "
                "edits in place and returns None or a Skip (tiered.proto_pass lifts functions that "
                "return a model)"
            )

    def notes(self) -> dict[str, Any]:
        """Return the notes for a `PassResult`, without those of nodes that were removed."""
        if not (self._missed or self._notes or self.applied):
            return {}
        unable = [each for _, _, each in self._notes if isinstance(each, Unable)]
        notes: dict[str, list[NodeNote]] = {"missed": [], "found": []}
        for node, skip in self._missed.items():
            if node.graph is not None:
                notes["missed"].append(_note(node, skip))
        for kind, subject, reason in self._notes:
            notes[kind].append(_note(subject, reason))
        notes["applied"] = [NodeNote("", label, law, law) for label, law in self.applied]
        return {kind: tuple(of_kind) for kind, of_kind in notes.items() if of_kind} | (
            {
                "unable": tuple(map(str, unable)),
                "unmet": tuple(str(each) for each in unable if each.despite_edits),
            }
            if unable
            else {}
        )


def _note(node: Node | None, reason: Skip | str) -> NodeNote:
    return note_of(node.op_type, node.label, reason) if node else note_of("", "", reason)


# --- memory of a model between runs ---------------------------------------------------------------

_SERIALS = itertools.count(1)


class Memory:
    """The memory of one model: stamps and names only, so that it keeps no model alive."""

    def __init__(self) -> None:
        self.serial = next(_SERIALS)
        # By `PlannedPass.key`: the stamp up to which the pass found nothing more to do.
        self.looked: dict[object, Stamp] = {}
        # By the text of a pass: the end of its last run, for passes that require it.
        self.ended: dict[str, Stamp] = {}
        # The passes that changed the model, in order.
        self.changed_by: list[str] = []


_MEMORIES: WeakKeyDictionary[Model, Memory] = WeakKeyDictionary()


def memory_of(model: Model) -> Memory:
    """Return the memory of a model."""
    memory = _MEMORIES.get(model)
    if memory is None:
        memory = _MEMORIES[model] = Memory()
    return memory
