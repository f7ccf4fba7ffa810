"""Where a node came from, by the rewrites of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

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
    sources: tuple[Origin, ...] = field(default=(), repr=False)
    removed_by: Rewrite | None = None

    def roots(self) -> list[str]:
        """Return the names of the nodes of the file that it came from, each once."""
        files = (each for each in self._walk() if each.rewrite is None)
        return list(dict.fromkeys(each.label for each in files))

    def rewrites(self) -> list[Rewrite]:
        """Return the rewrites on the way, the first one first."""
        made = (each.rewrite for each in self._walk())
        found = {rewrite.number: rewrite for rewrite in made if rewrite is not None}
        return [found[number] for number in sorted(found)]

    def _walk(self) -> Iterator[Origin]:
        """Yield this one and all sources, each once; the way may be longer than Python's stack."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            origin = pending.pop()
            if id(origin) not in seen:
                seen.add(id(origin))
                yield origin
                pending += reversed(origin.sources)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yield a line for each node, its sources below it; those of one node only once."""
        shown: set[int] = set()
        pending = [(self, 0)]
        while pending:
            origin, depth = pending.pop()
            line = f"{'  ' * depth}{origin._line()}"
            if origin.sources and id(origin) in shown:
                yield f"{line} (as above)"
                continue
            yield line
            shown.add(id(origin))
            pending += [(source, depth + 1) for source in reversed(origin.sources)]

    def _line(self) -> str:
        what = f"{self.op_type} {self.label!r}".strip()
        gone = self.removed_by
        end = f"; removed by {gone.pass_name}, {gone}" if gone is not None else ""
        if self.rewrite is None:
            return f"{what}: of the file{end}"
        return f"{what}: made by {self.rewrite.pass_name}, {self.rewrite}{end}"


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


class _Asked(NamedTuple):
    """A node whose origin is asked for: older rewrites than one that used it made it."""

    number: int
    label: str
    op_type: str
    before: int | None


def _origin(
    number: int,
    label: str,
    op_type: str,
    makers: _Makers,
    before: int | None,
) -> Origin:
    """Return the origin of a node, by rewrites older than one that used it."""
    first = _Asked(number, label, op_type, before)
    known: dict[_Asked, Origin] = {}
    # A stack: each of thousands of rewrites may be of what the one before made.
    pending = [first]
    while pending:
        asked = pending[-1]
        if asked in known:
            pending.pop()
            continue
        made = _made(asked, makers)
        if made is None:
            known[asked] = Origin(asked.label, asked.op_type)
            continue
        rewrite, change = made
        sources = [
            _Asked(state.id, state.label, state.op_type, rewrite.number)
            for state in _sources(rewrite, change)
        ]
        unknown = [source for source in sources if source not in known]
        if unknown:
            pending += unknown
            continue
        of = tuple(known[source] for source in sources)
        known[asked] = Origin(asked.label, asked.op_type, rewrite, of)
    return known[first]


def _made(asked: _Asked, makers: _Makers) -> tuple[Rewrite, Change] | None:
    """Return the last rewrite that made a node; None if it is of the file."""
    found = makers.get(asked.number, ())
    older = [made for made in found if asked.before is None or made[0].number < asked.before]
    return older[-1] if older else None


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
