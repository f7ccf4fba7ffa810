"""Cuts tensors at the peak of memory into parts, until a budget holds or none can be cut.

Sources: Lin et al. 2021, "MCUNetV2: memory-efficient patch-based inference", for rows of images;
Rabe and Staats 2021, "Self-attention does not need O(n^2) memory", for blocks of queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tiered.analysis.axes.node_cut import shape_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import Planner
from tiered.extensions.memory.splitting.split_region import SearchWork, SplitRegion, region_around
from tiered.extensions.memory.splitting.split_writer import shortest_axis, write_parts
from tiered.graph import Model, Node, Value
from tiered.rewriter import Skip

PARTS: Final = (2, 4, 8, 16, 32)
"""The numbers of parts that are tried."""

REGIONS: Final = 2
"""The regions around a tensor that are tried."""

TRIED: Final = 600_000
"""How many nodes and tensors the search looks at, about: the plans that judge cuts, and regions."""

WRITTEN: Final = 40
"""What a node or operand that is written counts as."""

_LAW: Final = "a tensor at the peak of memory  =>  its parts, one after the other"
_DEFAULT: Final = LayoutSizes()


class Splitting(NamedTuple):
    """What was cut.

    Attributes:
        regions: how many regions are in parts now.
        peak: the peak of the result.
        kept: for the tensors alive at a peak over the budget, largest first: why they are whole.
    """

    regions: int
    peak: int
    kept: tuple[tuple[Value, Skip], ...]


def split_model(model: Model, max_bytes: int, *, sizes: LayoutSizes = _DEFAULT) -> Splitting:
    """Compute nodes of the main graph in parts until the peak of memory is within a budget.

    The peak never rises: a cut that does not lower it is undone.

    Args:
        model: the model, with types.
        max_bytes: the budget of the bytes that are alive at one node.
        sizes: the sizes of dynamic dims; what has one is not cut.
    """
    return _Split(model, max_bytes, sizes).run()


class _Curve(NamedTuple):
    """The bytes alive at the nodes of an order; less is better by the peak, then its width."""

    peak: int
    width: int
    at: int
    order: Sequence[Node]

    @property
    def rank(self) -> tuple[int, int]:
        return self.peak, self.width


class _Split:
    def __init__(self, model: Model, max_bytes: int, sizes: LayoutSizes) -> None:
        self.model = model
        self.graph = model.main
        self.max_bytes = max_bytes
        self.sizes = sizes
        self.planner = Planner(sizes, views=True, in_place=True)
        self.work = SearchWork(TRIED)
        self.failed: set[frozenset[tuple[Node, int]]] = set()
        self.reasons: dict[str, Skip] = {}

    def run(self) -> Splitting:
        mark, regions, now = self.model.mark(), 0, self._curve()
        before = now.peak
        while now.peak > self.max_bytes:
            after = self._cut(now)
            if after is None:
                break
            regions, now = regions + 1, after
        if now.peak == before and regions:
            # Fewer nodes have the peak, but it is no lower.
            self.model.undo_to(mark)
            regions, now = 0, self._curve()
        kept = () if now.peak <= self.max_bytes else tuple(self._kept(now))
        return Splitting(regions, now.peak, kept)

    def _curve(self) -> _Curve:
        order = self.graph.topological_order()
        self.work.spend(len(order))
        curve = [step.nbytes for step in self.planner.plan(self.graph)[0]]
        peak = max(curve, default=0)
        return _Curve(peak, curve.count(peak), curve.index(peak) if curve else -1, order)

    def _cut(self, now: _Curve) -> _Curve | None:
        """Cut one tensor that is alive at the peak; None if no cut lowers it."""
        self.reasons.clear()
        self.failed.clear()
        for value in self._alive(now):
            after = self._cut_one(value, now)
            if after is not None:
                return after
        return None

    def _cut_one(self, value: Value, now: _Curve) -> _Curve | None:
        best: tuple[_Curve, SplitRegion, int] | None = None
        for region in self._regions(value):
            if region.key in self.failed:
                continue
            self.failed.add(region.key)
            worse = 0
            for parts in PARTS:
                if parts > shortest_axis(region) or self.work.left <= 0 or worse > 1:
                    break
                after = self._tried(value, region, parts)
                if after is None:
                    break
                if after.rank < (now if best is None else best[0]).rank:
                    best = after, region, parts
                else:
                    worse += 1
                if after.peak <= self.max_bytes:
                    break
            if best is not None:
                break
        if best is None:
            is_done = self.work.left > 0
            reason = "its parts do not lower the peak" if is_done else "the search was long"
            self.reasons.setdefault(value.name, Skip(reason))
            return None
        mark = self.model.mark()
        with self.graph.rewrite(_LAW, value):
            write_parts(self.graph, best[1], best[2])
            # As the order will be when it was saved.
            self.graph.order_nodes(self.graph.topological_order())
        return self._curve() if self.model.changed_since(mark) else None

    def _tried(self, value: Value, region: SplitRegion, parts: int) -> _Curve | None:
        """Return the curve with a region in `parts` parts, and undo it."""
        self.work.spend(WRITTEN * parts * sum(len(node.inputs) for node in region.nodes))
        mark = self.model.mark()
        reason = write_parts(self.graph, region, parts)
        if reason is not None:
            self.reasons[value.name] = reason
        after = self._curve() if reason is None else None
        self.model.undo_to(mark)
        return after

    def _regions(self, value: Value) -> list[SplitRegion]:
        """Return regions around a tensor, by the bytes of the tensors at their borders."""
        if value.static_shape is None:
            self.reasons[value.name] = Skip("its shape is not known")
            return []
        found = []
        for axis, size in enumerate(shape_of(value)):
            if size > 1 and self.work.left > 0:
                region = region_around(value, axis, self.sizes, self.work)
                if isinstance(region, Skip):
                    self.reasons[value.name] = region
                else:
                    found.append(region)
        if found:
            self.reasons.pop(value.name, None)
        return sorted(found, key=lambda each: sum(map(self.sizes.nbytes, each.border())))[:REGIONS]

    def _alive(self, now: _Curve) -> list[Value]:
        """Return the tensors that are alive at the peak, largest first; of a view, itself too."""
        place = {node: at for at, node in enumerate(now.order)}
        last = len(place)
        alive = [value for value in self.graph.inputs if not value.is_constant]
        for node in now.order[: now.at + 1]:
            made = [value for value in node.outputs if value is not None and not value.is_constant]
            for value in made:
                read = max((place[each] for each in value.readers), default=place[node])
                if (last if value.is_graph_output else read) >= now.at:
                    alive.append(value)
        return sorted(alive, key=lambda value: -self.planner.nbytes(value))

    def _kept(self, now: _Curve) -> Iterator[tuple[Value, Skip]]:
        for value in self._alive(now):
            if value.producer is None:
                yield value, Skip("it is an input")
            elif value.name in self.reasons:
                yield value, self.reasons[value.name]
