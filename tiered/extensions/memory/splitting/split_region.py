"""The nodes that are computed in parts so that a tensor is never there as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from typing import Final

from tiered.analysis.axes.node_cut import NodeCut, OperandWindow, node_cut, shape_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph import Node, Value
from tiered.rewriter import Skip

MOST_NODES: Final = 64
"""The nodes of a region, at most."""

_TRIED: Final = 10
"""What an attempt to put a tensor inside counts as."""


@dataclass
class SplitRegion:
    """Nodes that are cut along one axis each, and the tensors between them.

    Attributes:
        nodes: how each node is cut.
        inner: the tensors that are only there in parts, with the axis of each.
    """

    nodes: dict[Node, NodeCut] = field(default_factory=dict)
    inner: dict[Value, int] = field(default_factory=dict)

    @property
    def key(self) -> frozenset[tuple[Node, int]]:
        """The nodes with their axes: equal for regions that are cut in the same way."""
        return frozenset((node, cut.axis) for node, cut in self.nodes.items())

    def results(self) -> list[Value]:
        """Return the tensors that the parts are put together to."""
        return [node.output for node in self.nodes if node.output not in self.inner]

    def border(self) -> list[Value]:
        """Return the tensors that are there as a whole, before and after the region."""
        found: dict[Value, None] = {}
        for node in self.nodes:
            for value in filter(None, (*node.inputs, node.output)):
                if value not in self.inner and not value.is_constant:
                    found.setdefault(value)
        return list(found)


class SearchWork:
    """How many nodes and tensors a search may still look at."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, amount: int) -> bool:
        """Count some work, and return whether there was enough left."""
        self.left -= amount
        return self.left >= 0


def region_around(
    value: Value, axis: int, sizes: LayoutSizes, work: SearchWork | None = None
) -> SplitRegion | Skip:
    """Return a region with a tensor inside, cut along an axis.

    Tensors next to it of more than half of its size are inside too, where they can be.

    Args:
        value: the tensor.
        axis: one of its axes.
        sizes: the sizes of dynamic dims.
        work: what the search may look at; beyond that, the region grows no more.
    """
    work = work or SearchWork(sys.maxsize)
    region = SplitRegion()
    reason = _take_in(region, value, axis)
    work.spend(len(value.users) + 1)
    if reason is not None:
        return reason
    place = {node: at for at, node in enumerate(value.owner.topological_order())}
    closed = _grown(region, value, sizes, place, work)
    while (left := _left_and_entered(region, place, work)) is not None:
        if not work.spend(1) or not _put_inside(region, left):
            return closed or Skip("a path leaves the region at '{}' and returns", left.name)
    return region


def _grown(
    region: SplitRegion,
    value: Value,
    sizes: LayoutSizes,
    place: Mapping[Node, int],
    work: SearchWork,
) -> SplitRegion | None:
    """Put the large tensors at the border inside; return the last region that no path re-enters."""
    closed: SplitRegion | None = None
    border: list[tuple[int, int, Value]] = []
    seen: dict[Value, int] = {}
    nodes = 0
    is_new = True
    while True:
        for node in islice(region.nodes, nodes, None):
            for each in filter(None, (*node.inputs, node.output)):
                if each in seen or each.is_constant:
                    continue
                seen[each] = len(seen)
                if 2 * sizes.nbytes(each) > sizes.nbytes(value):
                    heappush(border, (-sizes.nbytes(each), seen[each], each))
            work.spend(len(node.inputs))
        nodes = len(region.nodes)
        while border and border[0][2] in region.inner:
            heappop(border)
        if not border or work.left <= 0:
            return closed
        if is_new and _left_and_entered(region, place, work) is None:
            closed = SplitRegion(dict(region.nodes), dict(region.inner))
        is_new = _put_inside(region, heappop(border)[2])
        work.spend(_TRIED)


def _put_inside(region: SplitRegion, value: Value) -> bool:
    """Put a tensor at the border inside; return whether it can be, else the region stays."""
    nodes, inner = len(region.nodes), len(region.inner)
    if value.producer is None:
        return False
    around = [value.producer, *value.readers]
    if nodes + sum(node not in region.nodes for node in around) > MOST_NODES:
        return False
    for axis in _axes_within(region, value):
        if _take_in(region, value, axis) is None:
            return True
        for node in [*islice(region.nodes, nodes, None)]:
            del region.nodes[node]
        for each in [*islice(region.inner, inner, None)]:
            del region.inner[each]
    return False


def _axes_within(region: SplitRegion, value: Value) -> Iterator[int]:
    """Yield the axes along which the nodes of a region cut a tensor at its border."""
    found: dict[int, None] = {}
    near = {value.producer, *value.readers}
    for node, cut in region.nodes.items():
        if node not in near:
            continue
        if node.output is value:
            found.setdefault(cut.axis)
        for window in _windows_of(node, cut, value):
            if window is not None:
                found.setdefault(window.axis)
    yield from found


def _windows_of(node: Node, cut: NodeCut, value: Value) -> list[OperandWindow | None]:
    """Return the windows of the operands of a node that are a value."""
    slots = [use.slot for use in value.users if use.node is node]
    return [cut.windows[slot] for slot in slots if slot < len(cut.windows)]


def _take_in(region: SplitRegion, value: Value, axis: int) -> Skip | None:
    """Put a tensor with its producer and its readers into a region; return why it cannot be.

    The region is of no use after a failure.
    """
    producer = value.producer
    if producer is None:
        return Skip("it is an input")
    if value.is_graph_output:
        return Skip("it is an output")
    if value.is_captured:
        return Skip("a body reads it")
    readers = value.readers
    if len(readers) > MOST_NODES:
        return Skip("more than {} nodes belong to it", MOST_NODES)
    region.inner[value] = axis
    reason = _add(region, producer, axis)
    for reader in readers:
        if reason is not None:
            break
        reason = _add_reader(region, reader, value, axis)
        if len(region.nodes) > MOST_NODES:
            reason = Skip("more than {} nodes belong to it", MOST_NODES)
    return reason


def _add(region: SplitRegion, node: Node, axis: int) -> Skip | None:
    """Add a node that is cut along an axis of its output."""
    known = region.nodes.get(node)
    if known is not None:
        fits = known.axis == axis
        return None if fits else Skip("{} is cut along another axis", node.label)
    cut = node_cut(node, axis)
    if cut is None:
        return Skip("{} ({}) has no parts along axis {}", node.label, node.op_type, axis)
    region.nodes[node] = cut
    return None


def _add_reader(region: SplitRegion, node: Node, value: Value, axis: int) -> Skip | None:
    """Add a node whose parts need parts of a tensor along an axis."""

    def fits(cut: NodeCut) -> bool:
        windows = _windows_of(node, cut, value)
        return all(window is not None and window.axis == axis for window in windows)

    known = region.nodes.get(node)
    if known is not None:
        return None if fits(known) else Skip("{} needs all of it", node.label)
    outputs = list(node.used_outputs.values())
    if len(outputs) == 1 and outputs[0].static_shape is not None:
        for its_axis, size in enumerate(shape_of(outputs[0])):
            cut = node_cut(node, its_axis) if size > 1 else None
            # No other operand is inside: all readers of those are in the region.
            if cut is not None and fits(cut):
                region.nodes[node] = cut
                return None
    return Skip("{} ({}) needs all of it", node.label, node.op_type)


def _left_and_entered(
    region: SplitRegion, place: Mapping[Node, int], work: SearchWork
) -> Value | None:
    """Return a result that the region reads, itself or what follows from it; None without one."""
    last = max(place[node] for node in region.nodes)
    outside: dict[Node, bool] = {}

    def enters(start: Node) -> bool:
        """Return whether a path from a node leads into the region; `outside` has the answers."""
        pending = [start]
        while pending:
            node = pending[-1]
            if node in region.nodes or node in outside or place[node] >= last:
                pending.pop()
                continue
            after = [each for each in node.successors if place[each] <= last]
            unknown = [each for each in after if each not in region.nodes and each not in outside]
            unknown = [each for each in unknown if place[each] < last]
            work.spend(len(after) + 1)
            if unknown:
                pending += unknown
                continue
            outside[node] = any(each in region.nodes or outside.get(each, False) for each in after)
            pending.pop()
        return start in region.nodes or outside.get(start, False)

    return next((result for result in region.results() if any(map(enters, result.readers))), None)
