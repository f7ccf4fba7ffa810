"""The journal: every edit of a model, in order, with the data that undoes it.

It is the single source for rollback, for the changes of a pass, for the dirty nodes, and for the
numbers of the rewrites. An entry is a tuple `(edit, subject, *before)`.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from tiered.graph.core.edit import NODE_EDITS, RENAMES, Edit, Entry, Mark, Stamp
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_Piece = TypeVar("_Piece", "Node", "Value")

_VALUE_EDITS: Final = frozenset(
    {Edit.SET_TYPE, Edit.SET_CONSTANT, Edit.MOVE_CONSTANT, Edit.ADD_CONSTANT}
)


_SET_INPUT: Final = Edit.SET_INPUT


class Journal:
    """An append-only list of edits that can be cut back to any mark."""

    __slots__ = (
        "_lows", "_noted", "_now", "_touched", "entries", "frozen", "undo_table", "undos",
    )  # fmt: skip

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.undo_table: dict[Edit, Callable[..., None]] = {}
        self.undos = 0
        # The last stamp that was made: often there was no edit since.
        self._now = Stamp(0, 0)
        # (undo number, length after it), lengths ascending: enough to compute how far back the
        # journal was cut since any stamp.
        self._lows: list[tuple[int, int]] = []
        # How long the journal was when each node was last touched, ascending, as of `_noted`.
        self._touched: dict[Node, int] = {}
        self._noted = 0
        # Why edits are not allowed now (a trace hook runs), or None.
        self.frozen: str | None = None

    def __len__(self) -> int:
        return len(self.entries)

    def stamp(self) -> Stamp:
        """Return the present moment."""
        now = self._now
        if now.length != len(self.entries) or now.undos != self.undos:
            now = self._now = Stamp(len(self.entries), self.undos)
        return now

    def since(self, mark: Mark) -> Sequence[Entry]:
        """Return the edits made after the mark, oldest first."""
        return self.entries[mark:]

    def kept_since(self, stamp: Stamp) -> int:
        """Return how many of the edits before the stamp were not undone since."""
        place = bisect.bisect_left(self._lows, (stamp.undos + 1, -1))
        if place == len(self._lows):
            return stamp.length
        return min(stamp.length, self._lows[place][1])

    def moved_since(self, stamp: Stamp) -> bool:
        """Return whether the journal has edits or undos since that moment."""
        return len(self.entries) != stamp.length or self.kept_since(stamp) < stamp.length

    def undo_to(self, mark: Mark) -> None:
        """Undo the edits after the mark, newest first."""
        entries, table = self.entries, self.undo_table
        if len(entries) <= mark:
            return
        self.undos += 1
        while self._lows and self._lows[-1][1] >= mark:
            self._lows.pop()
        self._lows.append((self.undos, mark))
        self._noted = min(self._noted, mark)
        for node in reversed(self._touched):
            if self._touched[node] <= mark:
                break
            self._touched[node] = mark
        while len(entries) > mark:
            edit, *rest = entries.pop()
            table[edit](*rest)

    def clear(self) -> None:
        """Drop all entries: earlier edits cannot be undone any more."""
        self.entries.clear()
        self.undo_table.clear()
        self._touched.clear()

    def note_touched(self) -> dict[Node, int]:
        """Return the length of the journal when each node was last touched, ascending.

        Nodes edited since the last call count as touched now.
        """
        now, touched = len(self.entries), self._touched
        if self._noted < now:
            edits = [entry for entry in self.entries[self._noted :] if entry[0] not in RENAMES]
            for node in dirty_nodes(edits):
                touched.pop(node, None)
                touched[node] = now
            self._noted = now
        return touched


class Snapshot:
    """A state of a model that can be restored, unless edits before it were undone."""

    __slots__ = ("_journal", "_stamp")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stamp = journal.stamp()

    @property
    def mark(self) -> Mark:
        """Return the position in the journal."""
        return self._stamp.length

    def restore(self) -> None:
        """Undo every edit made since: the same objects are at the same positions again.

        Raises:
            ModelError: edits before the snapshot were undone.
        """
        if self._journal.kept_since(self._stamp) < self._stamp.length:
            raise ModelError("the snapshot cannot be restored: edits before it were undone")
        self._journal.undo_to(self._stamp.length)


def dirty_nodes(entries: Iterable[Entry]) -> list[Node]:
    """Return the live nodes that edits touched, directly or through their values."""
    # By serial number, because a dict of nodes and values calls the hash of each.
    found: dict[int, Node] = {}
    values: dict[int, Value] = {}
    for entry in entries:
        edit, subject = entry[0], entry[1]
        if edit is _SET_INPUT:
            found[subject.id] = subject
            _, _, _, before, after = entry
            if before is not None:
                values[before.id] = before
            if after is not None:
                values[after.id] = after
        elif edit in NODE_EDITS:
            found[subject.id] = subject
            _add(values, subject._inputs)
            if edit is Edit.EXCHANGE_OUTPUTS:
                _add(found, entry[3:4])
            elif edit is Edit.SET_INPUTS:
                _add(values, entry[2])
            elif edit is Edit.FOLD_TO_INITIALIZER:
                _add(found, entry[3]._users.values())
            elif edit is Edit.REMOVE_NODE:
                # Values that its bodies read have fewer users now.
                _add(values, _read_in(subject.bodies))
        elif edit is Edit.EXCHANGE_CONTENT:
            for graph in subject.graphs():
                _add(found, graph.nodes)
        elif edit is Edit.SET_GRAPH_INPUTS:
            # A former input may be a constant now.
            for value in (*subject._inputs, *entry[2]):
                _add(found, value._users.values())
        elif edit is Edit.SET_GRAPH_OUTPUTS:
            _add(values, (*subject._outputs, *entry[2]))
            _add(found, (subject.parent_node,))
        elif edit is Edit.EXCHANGE_GRAPH_OUTPUT:
            _add(values, entry[2:4])
            _add(found, (subject.parent_node,))
        elif edit in _VALUE_EDITS:
            values[subject.id] = subject
            _add(found, subject._users.values())
    for value in values.values():
        if (producer := value.producer) is not None:
            found[producer.id] = producer
    # Most nodes are in a graph of the model itself, which no node around them can leave.
    return [
        node
        for node in found.values()
        if (graph := node.graph) is not None and (graph.parent_node is None or node.is_live)
    ]


def _read_in(bodies: Iterable[Graph]) -> Iterator[Value | None]:
    """Yield the operands of all nodes in bodies, nested bodies included."""
    pending = [*bodies]
    while pending:
        for node in pending.pop().nodes:
            yield from node._inputs
            pending += node.bodies


def _add(found: dict[int, _Piece], pieces: Iterable[_Piece | None]) -> None:
    for piece in pieces:
        if piece is not None:
            found[piece.id] = piece
