"""Two profiles side by side: the nodes that do the same work.

Nodes belong together if one was made from the other (`provenance.metadata` writes that down), if
they have a name and an operator in common, or if they compute a tensor of the same name. What is
left belongs to the node that reads its result: the parts of a decomposed operator stand together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from networkx.utils import UnionFind

from tiered.extensions.measurement.profile.model_profile import NodeTime, Profile, ProfilePart

_Member = tuple[int, int]
"""The place of the model, and that of the node."""


@dataclass(frozen=True)
class Pair:
    """Nodes of both models that do the same work; one side may be empty.

    Attributes:
        name: a tensor that both compute, or the name of a node.
        layer: the path of the module.
        first, second: the nodes of each model.
    """

    name: str
    layer: tuple[str, ...]
    first: tuple[NodeTime, ...]
    second: tuple[NodeTime, ...]

    @property
    def seconds(self) -> tuple[float, float]:
        """The time of each side."""
        first, second = (sum(node.seconds for node in side) for side in (self.first, self.second))
        return first, second

    @property
    def change(self) -> float:
        """The seconds by which the second side is slower; below 0 it is faster."""
        first, second = self.seconds
        return second - first


@dataclass(frozen=True)
class LayerChange:
    """The time of a layer in both models; None where one has no such layer."""

    name: str
    first: ProfilePart | None
    second: ProfilePart | None

    @property
    def change(self) -> float:
        """The seconds by which the second one is slower; below 0 it is faster."""
        first, second = (
            0.0 if part is None else part.seconds for part in (self.first, self.second)
        )
        return second - first


@dataclass(frozen=True)
class Profiles:
    """The profiles of one model, or of two side by side.

    Attributes:
        models: their profiles.
    """

    models: tuple[Profile, ...]

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The nodes of two models that belong together; what changed most comes first."""
        if len(self.models) < 2:
            return ()
        first, second = self.models
        found = _matched(first.nodes, second.nodes)
        return tuple(sorted(found, key=lambda pair: (-abs(pair.change), pair.name)))

    def layers(self, depth: int | None = None) -> tuple[LayerChange, ...]:
        """Return the layers of two models; what changed most comes first."""
        if len(self.models) < 2:
            return ()
        steps = min(model.depth for model in self.models) if depth is None else depth
        first, second = ({part.name: part for part in model.layers(steps)} for model in self.models)
        names = dict.fromkeys((*first, *second))
        changes = [LayerChange(name, first.get(name), second.get(name)) for name in names]
        return tuple(sorted(changes, key=lambda each: (-abs(each.change), each.name)))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in JSON types."""
        return {
            "models": [model.to_dict() for model in self.models],
            "pairs": [
                {
                    "name": pair.name,
                    "layer": list(pair.layer),
                    "first": [node.name for node in pair.first],
                    "second": [node.name for node in pair.second],
                    "seconds": list(pair.seconds),
                    "change": pair.change,
                }
                for pair in self.pairs
            ],
        }


def operators_of(nodes: Sequence[NodeTime]) -> str:
    """Return the operators of nodes as text: `MatMul, 2 Add`."""
    counts = Counter(node.op_type for node in nodes)
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in counts.items())


def _matched(first: Sequence[NodeTime], second: Sequence[NodeTime]) -> Iterator[Pair]:
    sides = (first, second)
    members = [(side, place) for side, nodes in enumerate(sides) for place in range(len(nodes))]
    groups: UnionFind[_Member] = UnionFind(members)
    direct = set[_Member]()
    owners: dict[tuple[object, ...], _Member] = {}
    for place, node in enumerate(first):
        for key in _keys(node):
            owners.setdefault(key, (0, place))
    for place, node in enumerate(second):
        for key in _keys(node):
            owner = owners.get(key)
            if owner is not None:
                groups.union(owner, (1, place))
                direct.update((owner, (1, place)))
    for side, nodes in enumerate(sides):
        _join_readers(side, nodes, direct, groups)
    for group in groups.to_sets():
        yield _pair(sides, sorted(group))


def _keys(node: NodeTime) -> Iterator[tuple[object, ...]]:
    """Yield what a node has in common with those of another model that do its work."""
    for output in node.place.outputs:
        yield ("tensor", output)
    if node.place.origins:
        for name in node.place.origins:
            yield ("origin", name)
    else:
        yield ("origin", node.name)
    if node.name:
        yield ("node", node.name, node.op_type)


def _join_readers(
    side: int, nodes: Sequence[NodeTime], direct: set[_Member], groups: UnionFind[_Member]
) -> None:
    """Join each node without a counterpart to the first node that reads its result."""
    readers: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in node.place.inputs:
            readers.setdefault(name, place)
    for place in range(len(nodes) - 1, -1, -1):
        if (side, place) in direct:
            continue
        reads = [readers[name] for name in nodes[place].place.outputs if name in readers]
        if reads:
            groups.union((side, min(reads)), (side, place))


def _pair(sides: tuple[Sequence[NodeTime], Sequence[NodeTime]], group: list[_Member]) -> Pair:
    first, second = (
        tuple(sides[side][place] for at, place in group if at == side) for side in (0, 1)
    )
    named = [{name for node in nodes for name in node.place.outputs} for nodes in (first, second)]
    last = (first or second)[-1]
    common = [name for node in first for name in node.place.outputs if name in named[1]]
    name = common[-1] if common else last.name
    return Pair(name, last.place.layer, first, second)
