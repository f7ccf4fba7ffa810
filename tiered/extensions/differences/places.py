"""The places where two graphs differ: nodes of both that belong together.

A place grows along the values that only one side has, and ends at those that both have. It joins
what both sides compute under one name, and nodes with those that they were made from, where the
metadata of the file say so (`provenance.metadata`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from networkx.utils import UnionFind

from tiered.extensions.differences.node_matching import Matching, Side
from tiered.graph import DataType, Tensor
from tiered.graph.core.provenance import ORIGINS
from tiered.graph.queries.structural_hash import content_key
from tiered.support.pages.render import short

if TYPE_CHECKING:
    from tiered.graph import Node, Value

_Member = tuple[Side, int]
"""The side and the place of a node in `Matching.nodes`."""
_LONGEST: Final = 60
"""Characters of an attribute or a name in a note."""
_BETWEEN: Final = "; "
EXCHANGED: Final = "inputs exchanged"


class NodeChange(NamedTuple):
    """A node of both models that differs; `notes` say how: attribute axis: 0, then 1."""

    before: Node
    after: Node
    notes: tuple[str, ...]


class DifferingPlace(NamedTuple):
    """Nodes of both models that belong together and differ.

    Attributes:
        graph: the body or function; "" for the main graph.
        before, after: its nodes in topological order; one side may be empty.
        changes: those that are nodes of both models.
    """

    graph: str
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    changes: tuple[NodeChange, ...]

    @property
    def kind(self) -> tuple[str, str, str]:
        """The operators of both sides as text, `Conv, BatchNormalization` and `Conv`, and what
        of nodes of both differs: `attribute axis`.
        """
        heads = (note.partition(":")[0] for change in self.changes for note in change.notes)
        what = ", ".join(sorted(set(heads)))
        return operators_of(self.before), operators_of(self.after), what

    @property
    def at(self) -> str:
        """The name of a node, to find it."""
        return (self.before or self.after)[-1].label


def places_of(found: Matching) -> list[DifferingPlace]:
    """Return the places of two graphs, in the order of the first one."""
    changes = {change.before: change for change in _changes(found)}
    changed = (set(changes), {change.after for change in changes.values()})
    members = [
        (side, at)
        for side in (0, 1)
        for at, node in enumerate(found.nodes[side])
        if node not in found.partners[side] or node in changed[side]
    ]
    groups: UnionFind[_Member] = UnionFind(members)
    for one, other in _joined(found, members, changes):
        groups.union(one, other)
    order = _order(found)
    sides = sorted(map(sorted, groups.to_sets()), key=lambda group: min(map(order, group)))
    return [_place(found, group, changes) for group in sides]


def _order(found: Matching) -> Any:
    """Return the sort key of a member: where it is, or for new nodes where its inputs are."""
    known = {node: at for at, node in enumerate(found.nodes[0])}
    places = [[*known.values()], []]
    seen: dict[Node, int] = {}
    for node in found.nodes[1]:
        partner = found.partners[1].get(node)
        before = [seen.get(producer, 0) for producer in node.predecessors]
        seen[node] = known[partner] if partner is not None else max(before, default=0)
        places[1].append(seen[node])
    return lambda member: (places[member[0]][member[1]], member)


def _place(
    found: Matching, group: list[_Member], changes: dict[Node, NodeChange]
) -> DifferingPlace:
    before, after = (
        tuple(found.nodes[side][at] for of, at in group if of == side) for side in (0, 1)
    )
    return DifferingPlace(
        found.label, before, after, tuple(changes[node] for node in before if node in changes)
    )


def _joined(
    found: Matching, members: Sequence[_Member], changes: dict[Node, NodeChange]
) -> Iterator[tuple[_Member, _Member]]:
    """Yield members that belong together."""
    places: list[dict[Node | None, int]]
    places = [{node: at for at, node in enumerate(nodes)} for nodes in found.nodes]
    inside = set(members)
    made: dict[str, _Member] = {}
    names = {found.nodes[0][at].label: (0, at) for side, at in members if side == 0}
    for side, at in members:
        node = found.nodes[side][at]
        for value in (*node._inputs, *node.captured):
            producer = None if value is None else value.producer
            other = (side, places[side].get(producer, -1))
            if other in inside and not found.is_shared(side, value):
                yield (side, at), other
        for value in node._outputs:
            if value is not None:
                yield (side, at), made.setdefault(found.id_of(side, value), (side, at))
        if side == 1:
            for name in (node.label, *node.metadata.get(ORIGINS, "").split(_BETWEEN)):
                if name in names:
                    yield (side, at), names[name]
    for change in changes.values():
        yield (0, places[0][change.before]), (1, places[1][change.after])


# --- one pair -------------------------------------------------------------------------------------


def _changes(found: Matching) -> Iterator[NodeChange]:
    for node in found.nodes[0]:
        other = found.partners[0].get(node)
        if other is not None:
            notes = tuple(_notes(found, node, other))
            if notes:
                yield NodeChange(node, other, notes)


def _notes(found: Matching, first: Node, second: Node) -> Iterator[str]:
    """Yield how two nodes differ, in words."""
    for name in sorted({*first.settings, *second.settings}):
        raw = [node.attr(name) for node in (first, second)]
        if content_key(raw[0]) != content_key(raw[1]):
            yield f"attribute {name}: {_both(*map(_shown, raw))}"
    yield from _inputs(found, first, second)
    outputs = [[value is not None for value in node._outputs] for node in (first, second)]
    if outputs[0] != outputs[1]:
        yield f"outputs: {_both(*(str(sum(side)) for side in outputs))}"
    dtypes = [_dtype(node) for node in (first, second)]
    if dtypes[0] != dtypes[1] and None not in dtypes:
        yield f"computes {_both(*map(str, dtypes))}"


def _inputs(found: Matching, first: Node, second: Node) -> Iterator[str]:
    """Yield the inputs that differ; bodies are compared on their own."""
    if found.ids_of(0, first) == found.ids_of(1, second) and _order_matters(found, first, second):
        yield EXCHANGED
        return
    for at in range(max(len(first._inputs), len(second._inputs))):
        values = first.input(at), second.input(at)
        ids = [found.id_of(side, value) for side, value in enumerate(values)]
        if ids[0] != ids[1]:
            yield f"input {at}: {_both(*map(_named, values))}"


def _order_matters(found: Matching, first: Node, second: Node) -> bool:
    ids = [
        [found.id_of(side, value) for value in node._inputs]
        for side, node in enumerate((first, second))
    ]
    return ids[0] != ids[1]


def _both(before: str, after: str) -> str:
    if before == after:
        return f"another {before}"
    return f"{before} -> {after}"


def _named(value: Value | None) -> str:
    if value is None:
        return "absent"
    producer = value.producer
    name = short(value.name, _LONGEST)
    return f"{name} of {producer.op_type}" if producer is not None else name


def _dtype(node: Node) -> str | None:
    dtype = next((each.dtype for each in node._outputs if each is not None), None)
    return None if dtype is None else DataType(dtype).name.lower()


def _shown(raw: Any) -> str:
    if raw is None:
        return "absent"
    if isinstance(raw, Tensor):
        return f"tensor{list(raw.shape)}"
    if isinstance(raw, bytes):
        return short(raw.decode(errors="replace"), _LONGEST)
    if isinstance(raw, tuple):
        return short(f"[{', '.join(map(_shown, raw))}]", _LONGEST)
    if hasattr(raw, "SerializeToString"):
        return type(raw).__name__
    return short(str(raw), _LONGEST)


def operators_of(nodes: Sequence[Node]) -> str:
    """Return the operators of nodes as text: `MatMul, 2 Add`; `nothing` for none."""
    counts = Counter(node.operator for node in nodes)
    named = (f"{count} {name}" if count > 1 else name for name, count in counts.items())
    return ", ".join(named) or "nothing"
