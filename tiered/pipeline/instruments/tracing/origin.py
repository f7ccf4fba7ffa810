"""Where a node came from, by the rewrites of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tiered.pipeline.instruments.tracing.events import Rewrite

if TYPE_CHECKING:
    from tiered.graph import Node
    from tiered.pipeline.instruments.tracing.changes import Change, NodeState

    _Makers = dict[int, list[tuple[Rewrite, Change]]]


@dataclass(frozen=True)
class Origin:
    """A node, the rewrite that made it, and the nodes that the rewrite made it of.

    A node that no rewrite made is of the file: `rewrite` is None, `sources` is empty. `removed_by`
    is the rewrite that took it away, if it is there no more.
    """

    label: str
    op_type: str
    rewrite: Rewrite | None = None
    sources: tuple[Origin, ...] = ()
    removed_by: Rewrite | None = None

    def roots(self) -> list[str]:
        """Return the names of the nodes of the file that it came from, each once."""
        if not self.sources:
            return [self.label] if self.rewrite is None else []
        return list(dict.fromkeys(name for source in self.sources for name in source.roots()))

    def rewrites(self) -> list[Rewrite]:
        """Return the rewrites on the way, the first one first."""
        found = {rewrite.number: rewrite for rewrite in self._rewrites()}
        return [found[number] for number in sorted(found)]

    def _rewrites(self) -> Iterator[Rewrite]:
        for source in self.sources:
            yield from source._rewrites()
        if self.rewrite is not None:
            yield self.rewrite

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> Iterator[str]:
        what = f"{self.op_type} {self.label!r}".strip()
        gone = self.removed_by
        end = f"; removed by {gone.pass_name}, {gone}" if gone is not None else ""
        if self.rewrite is None:
            yield f"{'  ' * depth}{what}: of the file{end}"
            return
        yield f"{'  ' * depth}{what}: made by {self.rewrite.pass_name}, {self.rewrite}{end}"
        for source in self.sources:
            yield from source._lines(depth + 1)


def origin_of(node: Node | str, rewrites: Sequence[Rewrite]) -> Origin:
    """Return where a node came from.

    Args:
        node: a node, or its name after the run.
        rewrites: those that were kept, in order.
    """
    makers: _Makers = {}
    for rewrite in rewrites:
        for change in rewrite.changes:
            if change.after is not None and _is_other(change):
                makers.setdefault(change.after.id, []).append((rewrite, change))
    if not isinstance(node, str):
        return _origin(node.id, node.label, node.op_type, makers, len(rewrites) + 1)
    for rewrite in reversed(rewrites):
        for state in rewrite.after:
            if state.label == node:
                return _origin(state.id, node, state.op_type, makers, None)
        for change in rewrite.changes:
            gone = change.before if change.after is None else None
            if gone is not None and gone.label == node:
                found = _origin(gone.id, node, gone.op_type, makers, None)
                return replace(found, removed_by=rewrite)
    return Origin(node, "")


def _is_other(change: Change) -> bool:
    """Return whether a node is new, or has another operator than before."""
    before, after = change.before, change.after
    return before is None or (after is not None and before.op_type != after.op_type)


def _origin(
    number: int,
    label: str,
    op_type: str,
    makers: _Makers,
    before: int | None,
) -> Origin:
    """Return the origin of a node, by rewrites older than one that used it."""
    found = [m for m in makers.get(number, ()) if before is None or m[0].number < before]
    if not found:
        return Origin(label, op_type)
    rewrite, change = found[-1]
    sources = tuple(
        _origin(state.id, state.label, state.op_type, makers, rewrite.number)
        for state in _sources(rewrite, change)
    )
    return Origin(label, op_type, rewrite, sources)


def _sources(rewrite: Rewrite, made: Change) -> list[NodeState]:
    """Return the nodes that a rewrite made a node of: those that went, or else the changed ones.

    A node that got another operator is of itself.
    """
    if made.before is not None:
        return [made.before]
    assert made.after is not None, "a change has a node before or after"
    gone = [c.before for c in rewrite.changes if c.before is not None and c.after is None]
    if rewrite.anchor or not gone:
        return gone or rewrite.before
    # A whole pass as one rewrite: of all that went, what computed the same tensors.
    same = [state for state in gone if set(state.outputs) & set(made.after.outputs)]
    return same or gone
