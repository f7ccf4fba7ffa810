"""What the Transposes of a model cost as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from tiered.graph import Node
from tiered.layout.cost import Cost, LayoutSizes, total
from tiered.layout.equivalence import Wire
from tiered.layout.permutation import is_identity
from tiered.layout.reach import Wiring, open_graphs, transposes


def transposing(wiring: Wiring, sizes: LayoutSizes) -> Cost:
    """Return how many Transposes a model has, of other tensors than constants, and their bytes."""
    return total(Cost(moved_bytes(node, wire, sizes), 1) for node, wire in transposes_of(wiring))


def transposes_of(wiring: Wiring) -> Iterator[tuple[Node, Wire]]:
    for graph in open_graphs(wiring.model):
        for node in transposes(graph):
            wire = wiring.wire_of(node.output)
            if wire is not None:
                yield node, wire


def moved_bytes(node: Node, wire: Wire, sizes: LayoutSizes) -> int:
    """Return what a Transpose moves: nothing where only dims of size 1 change places."""
    shape, perm = node.output.shape, node.perm
    assert perm is not None
    if shape is not None:
        moving = [axis for axis, dim in zip(perm, shape, strict=True) if dim != 1]
        if moving == sorted(moving):
            return 0
    return 0 if is_identity(perm) else sizes.nbytes(wire)
