"""What differs between two models, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tiered.extensions.differences.constant_pairing import TensorChange
from tiered.extensions.differences.places import DifferingPlace
from tiered.support.amounts import counted
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.extensions.differences.node_matching import Matching
    from tiered.pipeline.result import ModelStatistics


PARTS: Final = ("properties", "interface", "functions", "constants", "nodes", "names", "texts")
"""The parts in which models may differ."""


class Setting(NamedTuple):
    """A property of the model that differs; "" where a side lacks it."""

    what: str
    before: str
    after: str


class PortChange(NamedTuple):
    """An input or output that differs.

    Attributes:
        kind: input or output.
        before, after: its names; "" where a side lacks it.
        type_before, type_after: such as float[batch,3].
        note: what else differs: its place in the list, the node that computes it, a default.
    """

    kind: str
    before: str
    after: str
    type_before: str
    type_after: str
    note: str


class Renamed(NamedTuple):
    """A node, or a value that a node computes, that differs only in its name.

    Attributes:
        graph: the body or function; "" for the main graph.
        kind: node or value.
        before, after: its names.
    """

    graph: str
    kind: str
    before: str
    after: str


class PlaceKind(NamedTuple):
    """Places that look alike.

    Attributes:
        before, after: the operators of each side: `Conv, BatchNormalization` and `Conv`.
        what: what of nodes of both sides differs: `attribute axis`.
        places: in the order of the model.
    """

    before: str
    after: str
    what: str
    places: tuple[DifferingPlace, ...]


class Difference(Record):
    """What differs between two models.

    Attributes:
        files: what the models are called.
        before, after: their contents in numbers.
        settings: properties of the model: versions, producer, metadata, texts.
        ports: inputs and outputs.
        functions: local functions that only one model has, as (name, "removed" or "added").
        tensors: constants.
        places: the nodes that differ.
        renamed: nodes and values with other names only.
        texts: how many nodes differ in their doc strings or metadata only.
        same_nodes, same_tensors: how many nodes and constants are in both.
        matchings: each pair of graphs, for pages.
    """

    files: tuple[str, str]
    before: ModelStatistics
    after: ModelStatistics
    settings: tuple[Setting, ...]
    ports: tuple[PortChange, ...]
    functions: tuple[tuple[str, str], ...]
    tensors: tuple[TensorChange, ...]
    places: tuple[DifferingPlace, ...]
    renamed: tuple[Renamed, ...]
    texts: int
    same_nodes: int
    same_tensors: int
    matchings: tuple[Matching, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs: in what is computed, named or said."""
        return not self.differs_in()

    def differs_in(self, ignored: Collection[str] = ()) -> tuple[str, ...]:
        """Return what differs, in words: `3 constants`, `12 places in the graph`.

        Args:
            ignored: what does not count, of `PARTS`.
        """
        found = (
            (len(self.settings), "property", "properties"),
            (len(self.ports), "input or output", "inputs and outputs"),
            (len(self.functions), "function", ""),
            (len(self.tensors), "constant", ""),
            (len(self.places), "place in the graph", "places in the graph"),
            (len(self.renamed), "name", ""),
            (self.texts, "text of a node", "texts of nodes"),
        )
        return tuple(
            counted(count, one, many)
            for part, (count, one, many) in zip(PARTS, found, strict=True)
            if count and part not in ignored
        )

    @cached_property
    def operators(self) -> tuple[tuple[str, int, int], ...]:
        """The operators whose number differs, with the number before and after."""
        sides = self.before.operators, self.after.operators
        names = dict.fromkeys(name for side in sides for name in side)
        rows = [(name, sides[0].get(name, 0), sides[1].get(name, 0)) for name in names]
        return tuple(row for row in rows if row[1] != row[2])

    @cached_property
    def kinds(self) -> tuple[PlaceKind, ...]:
        """The places by what they look like; what occurs most often comes first."""
        groups: dict[tuple[str, str, str], list[DifferingPlace]] = {}
        for place in self.places:
            groups.setdefault(place.kind, []).append(place)
        found = [PlaceKind(*kind, tuple(places)) for kind, places in groups.items()]
        return tuple(sorted(found, key=lambda kind: -len(kind.places)))

    @cached_property
    def tensor_kinds(self) -> Counter[str]:
        """How many constants were added, removed, renamed, ...; one may be in several."""
        return Counter(what for change in self.tensors for what in change.what)

    def __str__(self) -> str:
        if self.is_same:
            return f"{self.files[0]} and {self.files[1]} are the same"
        return f"{self.files[0]} and {self.files[1]} differ in {', '.join(self.differs_in())}"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as `tiered diff --json` prints it; its help lists the keys."""
        return {
            "files": list(self.files),
            "same": self.is_same,
            "differs_in": list(self.differs_in()),
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "settings": [each._asdict() for each in self.settings],
            "interface": [each._asdict() for each in self.ports],
            "functions": [{"name": name, "what": what} for name, what in self.functions],
            "tensors": [{**each._asdict(), "what": list(each.what)} for each in self.tensors],
            "places": [_place_data(place) for place in self.places],
            "renamed": [each._asdict() for each in self.renamed],
            "texts": self.texts,
            "same_nodes": self.same_nodes,
            "same_tensors": self.same_tensors,
        }


def _place_data(place: DifferingPlace) -> dict[str, Any]:
    return {
        "graph": place.graph,
        "before": [{"name": node.label, "op_type": node.op_type} for node in place.before],
        "after": [{"name": node.label, "op_type": node.op_type} for node in place.after],
        "changes": [
            {"before": each.before.label, "after": each.after.label, "notes": list(each.notes)}
            for each in place.changes
        ],
    }
