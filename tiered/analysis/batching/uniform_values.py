"""Values that are equal for each sample of a batch that is baked into them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiered.analysis.batching.placements import placements
from tiered.analysis.batching.sample_facts import BatchRows, Sizes
from tiered.graph import Node, Value, is_deterministic
from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.runtime.fold.node_evaluation import ancestors, evaluate

REPEATING = ("Expand", "Tile")

_LARGEST = 1 << 22
"""The most elements of a value, or of what it is made of, that are computed to compare samples."""

Array = np.ndarray[Any, np.dtype[Any]]


def by_sample(array: Array, rows: BatchRows, batch: int) -> list[Array]:
    """Return the part of an array for each sample, with the axis of the batch as outer, inner."""
    shape = array.shape
    assert isinstance(rows.outer, int)
    assert isinstance(rows.inner, int)
    parts = (rows.outer, batch, rows.inner)
    split = array.reshape((*shape[: rows.axis], *parts, *shape[rows.axis + 1 :]))
    return [split.take(at, axis=rows.axis + 1) for at in range(batch)]


@dataclass(frozen=True)
class Uniformity:
    """Finds out what is equal for each sample.

    Attributes:
        old: the present size of the batch.
        sizes: returns the sizes of a value.
    """

    old: int
    sizes: Callable[[Value], Sizes]

    def holds(self, value: Value, rows: BatchRows) -> bool:
        """Return whether a value is known to be equal for each sample of the present batch."""
        if self.old == 1 or self._follows(value, rows):
            return True
        array = _computed(value) if value.const is None else value.const
        if array is not None:
            parts = by_sample(array, rows, self.old)
            first = parts[0].tobytes()
            return all(part.tobytes() == first for part in parts[1:])
        return False

    def _follows(self, value: Value, rows: BatchRows) -> bool:
        """Return whether it follows from the operator and its operands that samples are equal."""
        node = value.producer
        if node is None or node.domain or node.has_references:
            return False
        if node.is_op("ConstantOfShape"):
            return True
        if node.op_type in (*BROADCASTING, *REPEATING):
            operands = node.reads[:1] if node.op_type in REPEATING else node.reads
            return all(self._broadcasts(value, each, rows) for each in operands)
        source = node.input(0)
        if source is None:
            return False
        if node.op_type in UNARY:
            return self.holds(source, rows)
        if node.is_op("Gather"):
            return self._gathers(node, source, rows)
        return any(self.holds(source, each) for each in self._sources(node, source, rows))

    def _broadcasts(self, value: Value, operand: Value, rows: BatchRows) -> bool:
        """Return whether an operand is broadcast along the batch, or equal for each sample."""
        sizes = self.sizes(operand)
        axis = rows.axis - len(self.sizes(value)) + len(sizes)
        if axis < 0 or sizes[axis] == 1:
            return True
        return sizes[axis] == rows.size(self.old) and self.holds(operand, rows.on(axis))

    def _gathers(self, node: Node, data: Value, rows: BatchRows) -> bool:
        """Return whether a Gather takes equal elements for each sample."""
        indices = node.given(1)
        start = node.attr("axis") % max(1, len(self.sizes(data)))
        among = rows.axis - start
        count = len(self.sizes(indices))
        if 0 <= among < count:
            return self.holds(indices, rows.on(among))
        return self.holds(data, rows.on(rows.axis if among < 0 else rows.axis - count + 1))

    def _sources(self, node: Node, source: Value, rows: BatchRows) -> list[BatchRows]:
        """Return where the samples may be in the operand of a node that moves its elements."""
        if node.op_type in ("Flatten", "Reshape", "Squeeze", "Unsqueeze"):
            return placements(rows, self.sizes(node.output), self.sizes(source), self.old)
        if node.perm is not None:
            return [rows.on(node.perm[rows.axis])]
        return []


def _computed(value: Value) -> Array | None:
    """Return the numbers of a value that small constants determine; None for others."""
    if value.producer is None:
        return None
    nodes, constants = ancestors([value])
    made = [each for node in nodes for each in node.outputs if each is not None]
    reads = [each for node in nodes for each in node.reads]
    is_closed = all(each.is_constant or each.producer is not None for each in reads)
    if not is_closed or not all(is_deterministic(node) and not node.bodies for node in nodes):
        return None
    if any(each.owner is not value.owner for each in (*made, *constants)):
        return None
    counts = [_count(each) for each in (*made, *constants)]
    if any(count is None or count > _LARGEST for count in counts):
        return None
    return evaluate([value], lambda value, error: None).get(value)


def _count(value: Value) -> int | None:
    """Return how many elements a value has; None if that is not known."""
    shape = value.static_shape
    return None if shape is None else int(np.prod(shape, dtype=np.int64))
