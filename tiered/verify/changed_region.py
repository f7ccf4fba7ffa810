"""The changed region of two models: the changed nodes before and after, with their borders.

Nodes are compared by content, so any two models will do. A border is a value that crosses between
nodes inside and nodes outside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import onnx

from tiered.graph.core.tensor import Tensor
from tiered.verify.part_extraction import FunctionKey, GraphPart, Types, Weight, calls, cut

Inside = tuple[frozenset[int], frozenset[int]]
"""The numbers of nodes before and after."""

_SMALL = 1 << 14
"""Weights of up to 16 KiB are compared by content, larger ones by identity."""
PREFIX = "border "


@dataclass(frozen=True)
class RegionPair:
    """The changed nodes before and after.

    Attributes:
        inside: the nodes.
        reads: the borders that either reads.
        writes: the borders that both compute, in order.
    """

    sides: tuple[GraphPart, GraphPart]
    inside: Inside
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many nodes it has, before or after."""
        return max(map(len, self.inside))

    @property
    def nbytes(self) -> int:
        """The bytes of the weights that it reads, before or after."""
        return max(
            bytes_read(part, nodes) for part, nodes in zip(self.sides, self.inside, strict=True)
        )

    def cuts(self, types: Types) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """Return models of the nodes before and after; their outputs begin with `PREFIX`.

        Args:
            types: of the borders that they read.
        """
        before, after = (
            _framed(cut(part, nodes, types, self.writes, self.reads))
            for part, nodes in zip(self.sides, self.inside, strict=True)
        )
        return before, after


def changed_region(before: onnx.ModelProto, after: onnx.ModelProto) -> RegionPair | None:
    """Return the changed region of two models of one interface, None if nothing can be cut out."""
    sides = GraphPart.of(before), GraphPart.of(after)
    return region_of(sides, changed_nodes(sides))


def changed_nodes(
    sides: tuple[GraphPart, GraphPart],
    touched: Collection[int] | None = None,
    weights: Collection[str] | None = None,
) -> Inside:
    """Return the nodes that are only on one side, or compute something else on the other.

    Args:
        sides: before and after.
        touched: the only numbers that may differ; None for all.
        weights: the only weights that may differ; None for all.
    """
    before, after = sides
    versions = [{(each.domain, each.version) for each in part.frame.opset_import} for part in sides]
    if versions[0] != versions[1]:
        return frozenset(before.nodes), frozenset(after.nodes)
    looked = [{*part.nodes} if touched is None else part.nodes.keys() & touched for part in sides]
    keys_of = [
        {at: _key(part.nodes[at]) for at in some} for part, some in zip(sides, looked, strict=True)
    ]
    kept = {*keys_of[0].values()} & {*keys_of[1].values()}
    constants = _changed_constants(*sides, weights)
    functions = _changed_functions(*sides)
    inside = []
    for part, keys in zip(sides, keys_of, strict=True):
        nodes = {at for at, key in keys.items() if key not in kept}
        nodes.update(at for name in constants for at in part.consumers.get(name, ()))
        if functions:
            nodes.update(at for at in part.nodes if functions & {*calls(part.nodes[at])})
        inside.append(frozenset(nodes))
    return inside[0], inside[1]


def region_of(
    sides: tuple[GraphPart, GraphPart], inside: Inside, weights: Collection[str] | None = None
) -> RegionPair | None:
    """Return nodes with their borders; None if no result of theirs is read outside.

    Args:
        sides: before and after.
        inside: the nodes.
        weights: the only weights that may differ; None for all.
    """
    made: dict[str, None] = {}
    for part, nodes in zip(sides, inside, strict=True):
        made.update((n, None) for at in sorted(nodes) for n in part.nodes[at].output if n)
    made.update((name, None) for name in _changed_constants(*sides, weights))
    writes = [
        name
        for name in made
        if any(part.is_read_outside(name, nodes) for part, nodes in zip(sides, inside, strict=True))
        and all(part.has(name) for part in sides)
    ]
    if not writes:
        return None
    reads: dict[str, None] = {}
    for part, nodes in zip(sides, inside, strict=True):
        reads.update(dict.fromkeys(part.border(nodes, writes)))
    return RegionPair(sides, inside, tuple(reads), tuple(writes))


def grown(sides: tuple[GraphPart, GraphPart], inside: Inside, steps: int) -> Inside:
    """Return the nodes with the unchanged ones up to some steps around them."""
    around = [part.grown(nodes, steps) - nodes for part, nodes in zip(sides, inside, strict=True)]
    return with_unchanged(sides, inside, around[0] | around[1])


def with_unchanged(
    sides: tuple[GraphPart, GraphPart], inside: Inside, more: Collection[int]
) -> Inside:
    """Return the nodes with others that are the same before and after."""
    before, after = (
        nodes
        | {at for at in more if at in part.nodes}
        | {twin for at in more if at not in part.nodes for twin in _twins(other, part, at)}
        for part, other, nodes in zip(sides, sides[::-1], inside, strict=True)
    )
    return before, after


def _twins(part: GraphPart, other: GraphPart, at: int) -> set[int]:
    """Return the node of another part that is the same as one of this part, if there is one.

    A node that was removed and added again has another number and equal content.
    """
    names = [name for name in part.nodes[at].output if name] if at in part.nodes else []
    found = {other.producer[name] for name in names if name in other.producer}
    return {twin for twin in found if _key(other.nodes[twin]) == _key(part.nodes[at])}


def pieces(sides: tuple[GraphPart, GraphPart], inside: Inside) -> Iterator[Inside]:
    """Yield the nodes in groups; no value inside belongs to two groups."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    inner = {
        name
        for part, nodes in zip(sides, inside, strict=True)
        for at in nodes
        for name in part.nodes[at].output
        if name
    }
    linked: list[dict[int, str]] = [{}, {}]
    for part, nodes, first in zip(sides, inside, linked, strict=True):
        for at in sorted(nodes):
            names = [name for name in (*part.nodes[at].output, *part.reads[at]) if name in inner]
            first[at] = names[0] if names else ""
            for name in names:
                leader[find(name)] = find(names[0])
    groups: dict[str, tuple[set[int], set[int]]] = {}
    for side, first in enumerate(linked):
        for at, name in first.items():
            groups.setdefault(find(name), (set(), set()))[side].add(at)
    yield from ((frozenset(before), frozenset(after)) for before, after in groups.values())


def with_types(model: onnx.ModelProto, feeds: dict[str, object]) -> onnx.ModelProto:
    """Return a cut model with the types of the feeds as input types."""
    from tiered.graph.core.types import type_proto_of

    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for info in typed.graph.input:
        info.type.CopyFrom(type_proto_of(feeds[info.name]))
    return typed


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a model with inner values as additional outputs."""
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    known = {value.name for value in probe.graph.output}
    for name in names:
        if name not in known:
            probe.graph.output.add(name=name)
    return probe


def bytes_read(part: GraphPart, nodes: Collection[int]) -> int:
    """Return the bytes of the weights that nodes read."""
    names = {name for at in nodes for name in part.reads[at] if name in part.weights}
    weights = (part.weights[name] for name in names)
    return sum((w if isinstance(w, Tensor) else Tensor(w)).nbytes for w in weights)


def _framed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Add an Identity before each output: an output may then be an input or a weight."""
    names = [info.name for info in model.graph.output]
    del model.graph.output[:]
    for name in names:
        model.graph.output.add(name=PREFIX + name)
        model.graph.node.add(op_type="Identity", input=[name], output=[PREFIX + name])
    return model


def _key(node: onnx.NodeProto) -> bytes:
    """Return the content of a node without its name and metadata."""
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for field in ("name", "doc_string", "metadata_props"):
        bare.ClearField(field)
    return bytes(bare.SerializeToString(deterministic=True))


def _changed_constants(
    before: GraphPart, after: GraphPart, names: Collection[str] | None = None
) -> set[str]:
    """Return the constants that are on both sides with different contents.

    Args:
        before: one side.
        after: the other.
        names: the only ones that may differ; None for all.
    """
    return {
        name
        for name in (before.weights if names is None else names)
        if name in before.weights
        and name in after.weights
        and not _are_same(before.weights[name], after.weights[name])
    }


def _are_same(one: Weight, two: Weight) -> bool:
    if one is two:
        return True
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return max(one.nbytes, two.nbytes) <= _SMALL and one.key() == two.key()
    return one == two


def _changed_functions(before: GraphPart, after: GraphPart) -> set[FunctionKey]:
    """Return the functions that differ, and those that call them."""
    if before.frame is after.frame:
        return set()
    sides = [part.callees for part in (before, after)]
    changed = {word for word in sides[0].keys() | sides[1].keys()
               if sides[0].get(word) != sides[1].get(word)}  # fmt: skip
    grew = bool(changed)
    while grew:
        size = len(changed)
        for side in sides:
            changed.update(
                word
                for word, function in side.items()
                if any(changed.intersection(calls(node)) for node in function.node)
            )
        grew = len(changed) > size
    return changed
