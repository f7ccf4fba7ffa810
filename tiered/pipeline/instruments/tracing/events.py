"""The data of a Trace: a span for each decision about a pass, and the rewrites in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tiered.passes.interface.pass_info import NodeNote, PassInfo, PassResult
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.surroundings import Surroundings

Outcome = Literal["running", "ran", "skipped", "failed"]


_SHOWN = 3
"""Nodes that the line of a rewrite without an anchor names."""


@dataclass(slots=True, eq=False)
class Rewrite:
    """One numbered rewrite.

    Attributes:
        number: of the run; the same number is the same rewrite in every run.
        changes: the nodes that it touched, before and after.
        constants: the initializers that it added and removed.
        at: seconds since the trace began.
        undone: whether its pass, or a pipeline around it, failed later.
        around: what is next to these nodes.
    """

    number: int
    pass_name: str
    law: str
    graph: str
    anchor: str
    changes: tuple[Change, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    at: float
    undone: bool = False
    around: Surroundings = Surroundings()  # noqa: RUF009 - a tuple that cannot change

    @property
    def before(self) -> list[NodeState]:
        """The touched nodes, as they were before."""
        return [change.before for change in self.changes if change.before is not None]

    @property
    def after(self) -> list[NodeState]:
        """The touched and new nodes, as they were after."""
        return [change.after for change in self.changes if change.after is not None]

    @property
    def values(self) -> list[str]:
        """The tensors that these nodes compute, each once."""
        states = (*self.before, *self.after)
        return list(dict.fromkeys(name for state in states for name in state.outputs if name))

    def touches(self, label: str) -> bool:
        """Return whether a node of this name was among them, before or after."""
        return any(state.label == label for state in (*self.before, *self.after))

    def __str__(self) -> str:
        where = f" at {self.anchor!r}" if self.anchor else self._whole()
        return f"#{self.number} {self.law}{where}{' (undone)' if self.undone else ''}"

    def _whole(self) -> str:
        """Return the nodes of a whole pass that is one rewrite: the first ones, and how many."""
        labels = list(dict.fromkeys(state.label for state in (*self.before, *self.after)))
        shown = ", ".join(map(repr, labels[:_SHOWN]))
        more = len(labels) - _SHOWN
        return f" of {shown}{f' and {more} more' if more > 0 else ''}" if labels else ""

    def lines(self) -> Iterator[str]:
        """Yield the old nodes as `- node`, and the new ones as `+ node`."""
        for change in self.changes:
            if change.before is not None:
                yield f"- {change.before}"
            if change.after is not None:
                yield f"+ {change.after}"


@dataclass(slots=True, eq=False)
class Span:
    """One pass or pipeline on one model: the decision and its outcome.

    Attributes:
        text: the pass with options and scope.
        model: the label of the model, and `model_number` its number in this process.
        started, seconds: since the trace began, and how long.
        reason: why it ran or did not; `needed_by` the pass that required it, or "".
        undone: whether it failed, or a pipeline around it did.
        nodes_before, nodes_after: how many nodes the model had.
    """

    info: PassInfo
    model: str
    model_number: int
    started: float
    text: str = ""
    seconds: float = 0.0
    outcome: Outcome = "running"
    reason: str = ""
    needed_by: str = ""
    error: str = ""
    undone: bool = False
    changed: bool = False
    edits: int = 0
    nodes_before: int = 0
    nodes_after: int = 0
    children: list[Span] = field(default_factory=list)
    rewrites: list[Rewrite] = field(default_factory=list)
    missed: tuple[NodeNote, ...] = ()
    found: tuple[NodeNote, ...] = ()

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.info.name

    @property
    def is_pipeline(self) -> bool:
        return self.info.kind == "pipeline"

    def walk(self) -> Iterator[Span]:
        """Yield this span and all below it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def complete(self, result: PassResult) -> None:
        """Take over the result of the pass."""
        self.text = result.text
        self.reason = result.reason
        self.needed_by = result.needed_by
        self.changed = result.changed
        self.edits = result.edits
        self.error = result.error or ""
        self.missed, self.found = result.missed, result.found

    def undo(self) -> None:
        """Note that the rewrites of this span and of those below were undone."""
        for span in self.walk():
            span.undone = True
            for rewrite in span.rewrites:
                rewrite.undone = True


def as_data(state: NodeState | None) -> dict[str, Any] | None:
    """Return a node as plain data."""
    if state is None:
        return None
    return {
        "id": state.id,
        "op": state.op_type,
        "name": state.label,
        "inputs": list(state.inputs),
        "outputs": list(state.outputs),
    }
