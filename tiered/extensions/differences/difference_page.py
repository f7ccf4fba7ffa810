"""The page of a difference: tables, and the nodes of each place before and after, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tiered.extensions.differences.constant_pairing import TensorChange
from tiered.extensions.differences.model_difference import Difference
from tiered.extensions.differences.node_matching import Side
from tiered.extensions.differences.places import DifferingPlace
from tiered.pipeline.instruments.run_page.rewrites import Words, rewrites_data
from tiered.pipeline.instruments.tracing.changes import Change, NodeState
from tiered.pipeline.instruments.tracing.events import Rewrite
from tiered.pipeline.instruments.tracing.surroundings import Surroundings, ValueState
from tiered.support.amounts import change
from tiered.support.pages.render import page, short
from tiered.support.pages.sections import Cell, Section, Table, tables

if TYPE_CHECKING:
    from tiered.extensions.differences.node_matching import Matching
    from tiered.graph import Node, Value

MOST_ROWS: Final = 2000
"""Rows of a table."""
_MOST_NEAR: Final = 60
"""Nodes next to a place; a diagram shows fewer."""

_OTHER: Final = {
    "dtype": "of another dtype", "dims": "of other dims", "values": "with other values",
}  # fmt: skip

_DETAILS: Final = ("new name", "graph", "differs", "")

WORDS: Final = Words(
    unit="place",
    by="at",
    search="node or operator",
    about="Places, those that look alike together",
    none="No node differs.",
    untouched="It is in both models.",
    old="It is in the first model.",
    new="It is not in the first model.",
    kept="It is in the second one.",
    gone="It is not in the second one.",
)


def difference_page(found: Difference) -> str:
    """Return the page of a difference; of the files only the names are on it."""
    names = [short(os.path.basename(file)) for file in found.files]
    facts: list[Sequence[Cell]] = [
        ("before", names[0]),
        ("after", names[1]),
        ("they differ in", ", ".join(found.differs_in()) or "nothing"),
        ("nodes in both", found.same_nodes),
        ("constants in both", found.same_tensors),
    ]
    places = [place for kind in found.kinds for place in kind.places]
    sections = [tables("Summary", Table("The models", ("", ""), facts)), *_tables(found)]
    late = [each for each in sections if each.title in ("Constants", "Names")]
    first = [each for each in sections if each not in late]
    sections = [*first, WORDS.section("Places", len(places)), *late]
    matchings = {each.label: each for each in found.matchings}
    drawings = {label: _Drawing(each, at) for at, (label, each) in enumerate(matchings.items())}
    rewrites = (drawings[place.graph].rewrite(place, at) for at, place in enumerate(places, 1))
    payload = {**rewrites_data(rewrites, {}), "words": WORDS._asdict()}
    return page(f"tiered diff {names[0]} {names[1]}", sections, payload)


def _tables(found: Difference) -> Iterator[Section]:
    for title, headers, rows, totals in table_rows(found):
        shown = [[short(cell) if isinstance(cell, str) else cell for cell in row]
                 for row in (*rows[:MOST_ROWS], *totals)]  # fmt: skip
        more = len(rows) > MOST_ROWS
        notes = [f"The first {MOST_ROWS:,} of {len(rows):,} rows are shown."] if more else []
        yield tables(title.partition(":")[0], Table(title, headers, shown), notes=notes)


class DifferenceRows(NamedTuple):
    """A table of what differs; `totals` are rows that are always shown."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    totals: Sequence[Sequence[Cell]] = ()

    def without_empty(self) -> DifferenceRows:
        """Return the table without columns of details that are empty in every row."""
        every = [*self.rows, *self.totals]
        kept = [
            at
            for at, header in enumerate(self.headers)
            if header not in _DETAILS or any(row[at] != "" for row in every)
        ]
        rows, totals = (
            [[row[at] for at in kept] for row in part] for part in (self.rows, self.totals)
        )
        return DifferenceRows(self.title, [self.headers[at] for at in kept], rows, totals)


def table_rows(found: Difference) -> Iterator[DifferenceRows]:
    """Yield the tables that have rows."""
    names, types = ("before", "after"), ("type before", "type after")
    new, counts = (
        ("name", "new name"),
        ", ".join(
            f"{count:,} {_OTHER.get(what, what)}"
            for what, count in sorted(found.tensor_kinds.items(), key=_by_count)
        ),
    )
    for shown in (
        DifferenceRows("Properties", ("", *names), found.settings),
        DifferenceRows("Interface", ("", *new, *types, ""), [
            (each.kind, *_both(each.before, each.after), each.type_before, each.type_after,
             each.note)
            for each in found.ports
        ]),
        _operators(found),
        DifferenceRows("Functions", ("function", ""), found.functions),
        DifferenceRows("Nodes", ("places", *names, "differs", "first at"), [
            (len(kind.places), kind.before, kind.after, kind.what, kind.places[0].at)
            for kind in found.kinds
        ]),
        DifferenceRows(f"Constants: {counts}", ("", *new, *types, "graph"), [
            (", ".join(each.what), *_both(each.before, each.after), each.type_before,
             each.type_after, each.graph)
            for each in sorted(found.tensors, key=_by_weight)
        ]),
        DifferenceRows("Names", ("", *names, "graph"), [
            (each.kind, each.before, each.after, each.graph) for each in found.renamed
        ]),
    ):  # fmt: skip
        if shown.rows or shown.totals:
            yield shown.without_empty()


def _operators(found: Difference) -> DifferenceRows:
    before, after = found.before, found.after
    totals = (
        ("nodes", before.nodes, after.nodes),
        ("parameters", before.parameters, after.parameters),
        ("bytes", before.nbytes, after.nbytes),
    )
    headers = ("operator", "before", "after", "change")
    rows, whole = (
        [(name, old, new, change(old, new)) for name, old, new in part if old != new]
        for part in (found.operators, totals)
    )
    return DifferenceRows("Operators", headers, rows, whole)


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _by_weight(each: TensorChange) -> tuple[bool, int]:
    """Sort what both models have first, and large constants before small ones."""
    is_alone = not each.before or not each.after
    return is_alone, -max(each.bytes_before, each.bytes_after)


def _both(before: str, after: str) -> tuple[str, str]:
    return (before, "" if before == after else after) if before else (after, "")


class _Drawing:
    """Places of one pair of graphs as rewrites, whose diagrams the page draws.

    Nodes and values of both sides have one number and one name, so that the diagrams show what
    stays.
    """

    def __init__(self, found: Matching, number: int) -> None:
        self.found = found
        self.numbers: dict[tuple[Side, Node], int] = {}
        self.names: dict[str, str] = {}
        self.taken: set[str] = set()
        base = number << 32
        for node in found.nodes[0]:
            self.numbers[0, node] = base + 2 * node.id
        for node in found.nodes[1]:
            partner = found.partners[1].get(node)
            known = base + 2 * node.id + 1 if partner is None else self.numbers[0, partner]
            self.numbers[1, node] = known

    def rewrite(self, place: DifferingPlace, number: int) -> Rewrite:
        """Return a place as a rewrite."""
        before, after, what = place.kind
        partners = {each.before: each.after for each in place.changes}
        changed = set(partners.values())
        changes = [
            Change(self.state(0, node), self.state(1, partners[node]) if node in partners else None)
            for node in place.before
        ]
        changes += [Change(None, self.state(1, node)) for node in place.after
                    if node not in changed]  # fmt: skip
        notes = dict.fromkeys(note for each in place.changes for note in each.notes)
        return Rewrite(
            number=number,
            pass_name=short(f"{before} → {after}", 90),
            law="; ".join(notes) or what,
            graph=place.graph,
            anchor=place.at,
            changes=tuple(changes),
            added=(),
            removed=(),
            at=0.0,
            around=self.around(place),
        )

    def state(self, side: Side, node: Node) -> NodeState:
        """Return a node as data."""
        return NodeState(
            self.numbers[side, node],
            node.operator,
            node.label,
            tuple("" if value is None else self.name(side, value) for value in node._inputs),
            tuple("" if value is None else self.name(side, value) for value in node._outputs),
        )

    def name(self, side: Side, value: Value) -> str:
        """Return the name of a value on the page: that of the first model, if both have it."""
        identity = self.found.id_of(side, value)
        known = self.names.get(identity)
        if known is None:
            known = value.name
            while known in self.taken:
                known += "*"
            self.names[identity] = known
            self.taken.add(known)
        return known

    def around(self, place: DifferingPlace) -> Surroundings:
        """Return the nodes next to a place, and the types of its values."""
        inside = {*place.before, *place.after}
        near: dict[Node, None] = {}
        types: dict[str, ValueState] = {}
        for side, nodes in enumerate((place.before, place.after)):
            for node in nodes:
                for value in (*node._inputs, *node._outputs):
                    if value is not None:
                        types.setdefault(
                            self.name(side, value), ValueState(value.type, value.is_constant)
                        )
                for other in (*node.predecessors, *node.successors):
                    first = other if side == 0 else self.found.partners[1].get(other)
                    if first in self.found.partners[0] and first not in inside:
                        assert first is not None, "only nodes have partners"
                        near[first] = None
        shown = [node for node in [*near][:_MOST_NEAR] if (0, node) in self.numbers]
        return Surroundings(tuple(self.state(0, node) for node in shown), types)
