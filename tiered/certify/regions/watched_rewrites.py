"""Each rewrite of a run as a problem: the model before and after it, in step with the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from tiered.certify.checker import Proof
from tiered.certify.evaluation.values import Unproved
from tiered.certify.problem import Border, Problem
from tiered.certify.regions.problems import KnownSizes, problem_of
from tiered.graph import Model, Stamp, Value
from tiered.graph.core.types import TensorType
from tiered.graph.shape_inference.symbolic_dims import Poly, Size, size_of_dim
from tiered.verify.changed_region import Inside, changed_nodes, grown, region_of, with_unchanged
from tiered.verify.live_extract import advance, is_harmless, part_of
from tiered.verify.part_extraction import GraphPart

WAY = 6
"""How long the ways between changed nodes may be that are part of a region."""
MOST_BETWEEN = 200
STEPS = (0, 1, 2, 4)
"""How far around the changed nodes the regions that are tried reach."""


Kind = tuple[tuple[str, ...], tuple[str, ...]]
"""What changes have in common: the operators of the changed nodes before and after, sorted."""


class Way(NamedTuple):
    """How a change was proved, which is how the next one of its kind is tried first.

    Attributes:
        steps: how far around the changed nodes the region reached.
        proof: the proof.
    """

    steps: int
    proof: Proof


def border_of(model: Model, name: str) -> Border | None:
    """Return the type of a value of the main graph; None if it is no dense tensor."""
    value = model.main.value(name)
    if value is None or not isinstance(value.type, TensorType):
        return None
    dims = value.type.shape
    if dims is None:
        return Border(value.type.dtype, None, name)
    # A dim that is not known may have any size.
    sizes = [model.dims.size(dim) for dim in dims]
    named = [
        size_of_dim(f"{name}[{axis}]") if size is None else size for axis, size in enumerate(sizes)
    ]
    return Border(value.type.dtype, tuple(named), elements=_elements(value))


def _elements(value: Value) -> tuple[Size, ...] | None:
    """Return the integers that shape inference knows of a vector or a number, if it knows all."""
    found = value.elements if value.rank in (0, 1) and value.static_shape is not None else None
    if found is None:
        return None
    flat = tuple(found.ravel())
    is_known = all(isinstance(each, int | Poly) and not isinstance(each, bool) for each in flat)
    return flat if is_known else None


class Watched:
    """One model while passes run."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._before = part_of(model)
        self._after = self._before.copy()
        self._stamp: Stamp = model.journal.stamp()
        self._known = KnownSizes(self._before, lambda name: border_of(model, name))

    def is_undone(self) -> bool:
        """Return whether edits were undone that were seen."""
        return self._model.journal.kept_since(self._stamp) != self._stamp.length

    def changes(self, known: Mapping[Kind, Way]) -> Iterator[WatchedChange | Unproved]:
        """Yield the change since the last call as regions to try, the smallest first.

        Args:
            known: how changes of the same kind were proved: such a region is the very first.
        """
        model = self._model
        entries = model.journal.since(self._stamp.length)
        step = advance(self._after, model, entries)
        self._stamp = model.journal.stamp()
        if step is None:
            self._before = part_of(model)
            self._after = self._before.copy()
            yield Unproved("any node may have changed")
            return
        sides = self._before, self._after
        before, after = ([[*part.inputs], [*part.outputs]] for part in sides)
        try:
            if before != after:
                yield Unproved("the interface changed")
                return
            inside = changed_nodes(sides, {*step.removed, *step.added}, step.weights)
            yield from self._regions(sides, inside, step.weights, known)
        finally:
            step.apply(self._before)

    def has_changed(self) -> bool:
        """Return whether anything that is computed was edited since the last call of `changes`."""
        return not is_harmless(self._model.journal.since(self._stamp.length))

    def _regions(
        self,
        sides: tuple[GraphPart, GraphPart],
        inside: Inside,
        weights: Collection[str],
        known: Mapping[Kind, Way],
    ) -> Iterator[WatchedChange | Unproved]:
        kind = _kind(sides, inside)
        way = known.get(kind)
        inside = with_unchanged(sides, inside, _between(sides, inside))
        seen: set[Inside] = set()
        for steps in STEPS if way is None else (way.steps, *STEPS):
            nodes = grown(sides, inside, steps) if steps else inside
            if nodes in seen:
                continue
            region = region_of(sides, nodes, weights)
            if region is None:
                yield WatchedChange(None, nodes)
                return
            self._known.part = sides[0]
            try:
                problem = problem_of(region, lambda name: border_of(self._model, name), self._known)
            except Unproved as error:
                yield error
                continue
            yield WatchedChange(problem, nodes, kind, steps, way if way and not seen else None)
            seen.add(nodes)
        yield from self._whole(sides, inside, weights)

    def _whole(
        self, sides: tuple[GraphPart, GraphPart], inside: Inside, weights: Collection[str]
    ) -> Iterator[WatchedChange]:
        """Yield the changed nodes with all that is computed before them, from the inputs on."""
        before = [_before(part, nodes) for part, nodes in zip(sides, inside, strict=True)]
        nodes = with_unchanged(sides, inside, before[0] | before[1])
        region = region_of(sides, nodes, weights)
        if region is None or not set(region.reads) <= {*sides[0].inputs}:
            return
        try:
            problem = problem_of(region, lambda name: border_of(self._model, name), self._known)
        except Unproved:
            return
        yield WatchedChange(problem, nodes, is_whole=True)


def _kind(sides: tuple[GraphPart, GraphPart], inside: Inside) -> Kind:
    """Return the operators of changed nodes, before and after."""
    before, after = (
        tuple(sorted(part.nodes[at].op_type for at in nodes))
        for part, nodes in zip(sides, inside, strict=True)
    )
    return before, after


def _before(part: GraphPart, nodes: Collection[int]) -> set[int]:
    found: set[int] = set()
    frontier = [*nodes]
    while frontier:
        more = set(_producers(part, frontier.pop())) - found
        found |= more
        frontier += more
    return found


def _between(sides: tuple[GraphPart, GraphPart], inside: Inside) -> set[int]:
    """Return the nodes on short ways from changed nodes to changed nodes.

    Without them a result of the region would be computed into one of its borders.
    """
    found: set[int] = set()
    for part, nodes in zip(sides, inside, strict=True):
        before = _around(nodes, partial(_producers, part))
        after = _around(nodes, partial(_consumers, part))
        found |= (before & after) - nodes
    return found


def _producers(part: GraphPart, at: int) -> list[int]:
    return [part.producer[name] for name in part.reads[at] if name in part.producer]


def _consumers(part: GraphPart, at: int) -> list[int]:
    return [user for name in part.nodes[at].output for user in part.consumers.get(name, ())]


def _around(nodes: Collection[int], beside: Callable[[int], list[int]]) -> set[int]:
    """Return the nodes that are up to some steps away, but at most some."""
    found: set[int] = set()
    frontier: Collection[int] = nodes
    for _ in range(WAY):
        frontier = {other for at in frontier for other in beside(at)} - found
        if len(found) + len(frontier) > MOST_BETWEEN:
            break
        found |= frontier
    return found


@dataclass(frozen=True)
class WatchedChange:
    """A region that may show that a change is right; without a problem nothing is computed.

    Attributes:
        kind: what changed.
        steps: how far around the changed nodes it reaches.
        way: how changes of this kind were proved, if the region was chosen for it.
        is_whole: whether it begins at the inputs of the model: it is not proved, it can be run.
    """

    problem: Problem | None
    nodes: Inside
    kind: Kind = ((), ())
    steps: int = 0
    way: Way | None = None
    is_whole: bool = False
