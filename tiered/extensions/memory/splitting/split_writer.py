"""Writes a region in parts: slices of what it reads, copies of its nodes, and Concats."""

from __future__ import annotations

from typing import Any

import numpy as np

from tiered.analysis.axes.node_cut import NodeCut, OperandWindow, shape_of
from tiered.analysis.axes.partial_copies import copy_of
from tiered.extensions.memory.recomputed_copies import maker_of
from tiered.extensions.memory.splitting.split_region import SplitRegion
from tiered.graph import Graph, Node, Value
from tiered.graph.core.schema import NEWEST, schema_of
from tiered.graph.queries.formals import dtype_name, formal_of, output_formal_of
from tiered.rewriter import Skip
from tiered.rewriter.idioms.parts_along import part_along, part_ranges

Range = tuple[int, int]


def shortest_axis(region: SplitRegion) -> int:
    """Return the size of the shortest axis that the results of a region are cut along."""
    return min(shape_of(value)[region.nodes[maker_of(value)].axis] for value in region.results())


def write_parts(graph: Graph, region: SplitRegion, parts: int) -> Skip | None:
    """Replace the results of a region by Concats of parts; return why it cannot be done."""
    order = [node for node in graph.topological_order() if node in region.nodes]
    results = region.results()
    unfit = _unfit(graph, region)
    if unfit is not None:
        return Skip("Slice and Concat do not take {}", dtype_name(unfit))
    made: dict[Value, list[Value]] = {value: [] for value in results}
    for at in range(parts):
        wanted = {}
        for value in results:
            size = shape_of(value)[region.nodes[maker_of(value)].axis]
            wanted[value] = part_ranges(size, parts)[at]
        ranges = _demands(region, order, wanted)
        if any(begin >= end for begin, end in ranges.values()):
            return Skip("a part would be empty")
        part = _PartCopies(graph, region, ranges)
        for node in order:
            part.add(node)
        for value in results:
            made[value].append(part.of(value, region.nodes[maker_of(value)].axis, wanted[value]))
    for value in results:
        axis = region.nodes[maker_of(value)].axis
        graph.replace(maker_of(value), (graph.op.Concat(*made[value], axis=axis),))
    return None


def _unfit(graph: Graph, region: SplitRegion) -> int | None:
    """Return a dtype of a region that cannot be cut in the opset of the model; None without one."""
    schemas = [schema_of(name, "", graph.opset("") or NEWEST) for name in ("Slice", "Concat")]
    takes = [formal_of(schema, 0).dtypes for schema in schemas if schema is not None]
    dtypes = [value.dtype for value in (*region.border(), *region.inner) if value.dtype is not None]
    return next((each for each in dtypes if not all(each in of for of in takes)), None)


def _demands(
    region: SplitRegion, order: list[Node], wanted: dict[Value, Range]
) -> dict[Value, Range]:
    """Return the range of the output of each node that a part of the results needs."""
    ranges = dict(wanted)
    for node in reversed(order):
        begin, end = ranges[node.output]
        cut = region.nodes[node]
        for operand, window in zip(node.operands, cut.windows, strict=False):
            if operand is None or window is None or operand.producer not in region.nodes:
                continue
            low, high = window.range(begin, end)
            known = ranges.get(operand, (low, high))
            ranges[operand] = min(low, known[0]), max(high, known[1])
    return ranges


class _PartCopies:
    """The copies of the nodes of a region for one part."""

    def __init__(self, graph: Graph, region: SplitRegion, ranges: dict[Value, Range]) -> None:
        self.graph = graph
        self.region = region
        self.ranges = ranges
        self.copies: dict[Value, Value] = {}

    def add(self, node: Node) -> None:
        """Add the copy of a node whose operands in the region have theirs."""
        cut = self.region.nodes[node]
        begin, end = self.ranges[node.output]
        operands = [
            None if value is None else self._operand(value, window, (begin, end))
            for value, window in zip(node.operands, cut.windows, strict=True)
        ]
        self.copies[node.output] = _copy(self.graph, node, cut, operands, begin, end)

    def of(self, value: Value, axis: int, wanted: Range) -> Any:
        """Return a range of a tensor, of the region or from outside."""
        copied = self.copies.get(value)
        if copied is None:
            return part_along(self.graph, value, axis, *wanted)
        low, high = self.ranges[value]
        if wanted == (low, high):
            return copied
        return part_along(self.graph, copied, axis, wanted[0] - low, wanted[1] - low)

    def _operand(self, value: Value, window: OperandWindow | None, wanted: Range) -> Any:
        if window is not None:
            low, high = window.range(*wanted)
            whole = (low, high) == (0, window.size) and value not in self.copies
            return value if whole else self.of(value, window.axis, (low, high))
        return value


def _copy(
    graph: Graph, node: Node, cut: NodeCut, operands: list[Any], begin: int, end: int
) -> Value:
    if cut.form == "shape":
        shape = list(shape_of(node.output))
        shape[cut.axis] = end - begin
        make = graph.op.Expand if node.op_type == "Expand" else graph.op.Reshape
        reshaped: Value = make(operands[0], np.array(shape, np.int64))
        return reshaped
    changed: dict[str, Any] = {}
    if cut.form == "pads":
        window = next(each for each in cut.windows if each is not None)
        spatial = len(shape_of(node.output)) - 2
        pads = list(node.attr("pads") or (0,) * 2 * spatial)
        pads[cut.axis - 2], pads[cut.axis - 2 + spatial] = window.pads(begin, end)
        changed["pads"] = pads
    return copy_of(graph, node, operands, _written_outputs(node), **changed)[0]


def _written_outputs(node: Node) -> int:
    """Return how many outputs a copy has: the first one, and those that cannot be absent."""
    schema = node.schema
    if schema is None:
        return 1
    formals = [output_formal_of(schema, place) for place in range(1, len(node.outputs))]
    return 1 + sum(not formal.is_optional for formal in formals)
