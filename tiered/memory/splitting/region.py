"""The nodes that are computed in parts so that a tensor is never there as a whole."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tiered.graph import Node, Value
from tiered.layout.sizes import LayoutSizes
from tiered.memory.splitting.node_cut import NodeCut, node_cut, shape_of
from tiered.rewriter import Skip

MOST_NODES: Final = 64
"""The nodes of a region, at most."""


@dataclass
class Region:
    """Nodes that are cut along one axis each, and the tensors between them.

    Attributes:
        nodes: how each node is cut.
        inner: the tensors that are only there in parts, with the axis of each.
    """

    nodes: dict[Node, NodeCut] = field(default_factory=dict)
    inner: dict[Value, int] = field(default_factory=dict)

    def results(self) -> list[Value]:
        """Return the tensors that the parts are put together to."""
        return [node.output for node in self.nodes if node.output not in self.inner]

    def border(self) -> list[Value]:
        """Return the tensors that are there as a whole, before and after the region."""
        found: dict[Value, None] = {}
        for node in self.nodes:
            for value in (*node.inputs, node.output):
                if value is not None and value not in self.inner and not value.is_constant:
                    found.setdefault(value)
        return list(found)


def region_around(value: Value, axis: int, sizes: LayoutSizes) -> Region | Skip:
    """Return a region with a tensor inside, cut along an axis.

    Tensors next to it of more than half of its size are inside too, where they can be.
    """
    region = Region()
    reason = _take_in(region, value, axis)
    if reason is not None:
        return reason
    place = {node: at for at, node in enumerate(value.owner.topological_order())}
    closed = None
    refused: set[Value] = set()
    while (chosen := _next_inside(region, value, sizes, refused)) is not None:
        if _left_and_entered(region, place) is None:
            closed = region
        taken = _with_inside(region, chosen)
        if taken is None:
            refused.add(chosen)
        else:
            region = taken
    while (left := _left_and_entered(region, place)) is not None:
        taken = _with_inside(region, left)
        if taken is None:
            return closed or Skip("a path leaves the region at '{}' and returns", left.name)
        region = taken
    return region


def _next_inside(
    region: Region, value: Value, sizes: LayoutSizes, refused: Container[Value]
) -> Value | None:
    """Return the largest tensor at the border that should be inside; None without one."""
    large = [
        each
        for each in region.border()
        if each not in refused and 2 * sizes.nbytes(each) > sizes.nbytes(value)
    ]
    return max(large, key=sizes.nbytes, default=None)


def _with_inside(region: Region, value: Value) -> Region | None:
    """Return a region with a tensor of its border inside; None if it cannot be."""
    for axis in _axes_within(region, value):
        larger = Region(dict(region.nodes), dict(region.inner))
        if _take_in(larger, value, axis) is None:
            return larger
    return None


def _axes_within(region: Region, value: Value) -> Iterator[int]:
    """Yield the axes along which the nodes of a region cut a tensor at its border."""
    found: dict[int, None] = {}
    for node, cut in region.nodes.items():
        if node.output is value:
            found.setdefault(cut.axis)
        for operand, window in zip(node.operands, cut.windows, strict=False):
            if operand is value and window is not None:
                found.setdefault(window.axis)
    yield from found


def _take_in(region: Region, value: Value, axis: int) -> Skip | None:
    """Put a tensor with its producer and its readers into a region; return why it cannot be.

    The region is of no use after a failure.
    """
    producer = value.producer
    if producer is None or value.is_constant:
        return Skip("it is an input")
    if value.is_graph_output:
        return Skip("it is an output")
    if value.is_captured:
        return Skip("a body reads it")
    region.inner[value] = axis
    reason = _add(region, producer, axis)
    for reader in value.readers:
        if reason is None:
            reason = _add_reader(region, reader, value, axis)
    if reason is None and len(region.nodes) > MOST_NODES:
        return Skip("more than {} nodes belong to it", MOST_NODES)
    return reason


def _add(region: Region, node: Node, axis: int) -> Skip | None:
    """Add a node that is cut along an axis of its output."""
    known = region.nodes.get(node)
    if known is not None:
        fits = known.axis == axis
        return None if fits else Skip("{} is cut along another axis", node.label)
    cut = node_cut(node, axis)
    if cut is None or not _agrees(region, node, cut):
        return Skip("{} ({}) has no parts along axis {}", node.label, node.op_type, axis)
    region.nodes[node] = cut
    return None


def _add_reader(region: Region, node: Node, value: Value, axis: int) -> Skip | None:
    """Add a node whose parts need parts of a tensor along an axis."""
    known = region.nodes.get(node)
    if known is not None:
        fits = _agrees(region, node, known)
        return None if fits else Skip("{} needs all of it", node.label)
    outputs = [each for each in node.outputs if each is not None and each.is_used]
    if len(outputs) == 1 and outputs[0].static_shape is not None:
        for its_axis, size in enumerate(shape_of(outputs[0])):
            cut = node_cut(node, its_axis) if size > 1 else None
            if cut is not None and _agrees(region, node, cut):
                region.nodes[node] = cut
                return None
    return Skip("{} ({}) needs all of it", node.label, node.op_type)


def _agrees(region: Region, node: Node, cut: NodeCut) -> bool:
    """Return whether a cut takes parts of the inner tensors along their axes."""
    if region.inner.get(node.output, cut.axis) != cut.axis:
        return False
    return all(
        window is not None and window.axis == region.inner[operand]
        for operand, window in zip(node.operands, cut.windows, strict=False)
        if operand is not None and operand in region.inner
    )


def _left_and_entered(region: Region, place: Mapping[Node, int]) -> Value | None:
    """Return a result that the region reads, itself or what follows from it; None without one."""
    last = max(place[node] for node in region.nodes)
    for result in region.results():
        seen: set[Node] = set()
        pending = result.readers
        while pending:
            node = pending.pop()
            if node in region.nodes:
                return result
            if node not in seen and place[node] < last:
                seen.add(node)
                pending += node.successors
    return None

