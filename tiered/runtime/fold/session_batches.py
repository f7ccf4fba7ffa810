"""Batches: the nodes that one session computes, within bounds of memory and of work."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tiered.rewriter.skip import Skip
from tiered.runtime.fold.compute_cost import held_bytes, needs_of, work_of
from tiered.runtime.fold.foldable_nodes import is_known

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# A file of a few bytes must not exhaust the memory: what one batch holds, in bytes.
_LARGEST_BATCH: Final = 1 << 30

# Nor must it take all day: multiplications, about a second of them at a time, which are few only
# if they are far fewer.
_MOST_WORK: Final = 1 << 33
_LITTLE_WORK: Final = 1 << 20

TOO_LONG: Final = Skip("computing it takes too long")

Sizes = dict["Value", int]


class Batches:
    """Takes batches of nodes that can be computed.

    Args:
        refused: the nodes that are not computed, and why; more are added.
        max_memory: the memory that may be used, in bytes; None for the default.
        largest: the bytes of the largest constant that is computed; negative for no limit.

    Attributes:
        growing: nodes that no batch contains for now: their constants make the model grow.
    """

    def __init__(
        self, refused: dict[Node, Skip], max_memory: int | None, largest: int = -1
    ) -> None:
        self.refused = refused
        self.growing: set[Node] = set()
        self._largest = largest
        self._most = min(_LARGEST_BATCH, (max_memory or _LARGEST_BATCH * 2) // 2)

    def take(
        self, graph: Graph, pending: deque[Node], sizes: Sizes, *, ahead: bool = False
    ) -> set[Node]:
        """Take pending nodes, and return those that one session can compute.

        Args:
            graph: their graph; nodes of other graphs are dropped.
            pending: nodes that are not taken remain there.
            sizes: gets the bytes of all operands and outputs of the nodes.
            ahead: take also nodes that only the next sessions can compute, as far as their sizes
                are known.
        """
        works: dict[Node, int] = {}
        held = 0
        while pending and (ahead or held < self._most):
            node = pending.popleft()
            if node.graph is not graph or node in works or node in self.refused:
                continue
            if node in self.growing or not is_known(node, works.keys()):
                continue
            needs, work = needs_of(node, sizes, self._most, ahead=ahead), work_of(node) or 0
            if isinstance(needs, Skip):
                self.refused[node] = needs
            elif work > _MOST_WORK:
                self.refused[node] = TOO_LONG
            elif needs is not None and self._makes_too_large(node, needs):
                self.refused[node] = Skip("the constant exceeds max_tensor_size")
            elif needs is not None:
                works[node] = work
                sizes.update(needs)
                held += sum(held_bytes(value, size) for value, size in needs.items())
                readers = (v.readers for v in node.outputs if v is not None)
                pending.extend(reader for each in readers for reader in each)
        if sum(works.values()) <= _MOST_WORK:
            return set(works)
        # All long computations or none of them: otherwise a second run would compute the rest.
        long = [node for node, work in works.items() if work > _LITTLE_WORK]
        # Without any, many short ones take long together.
        self.refused |= dict.fromkeys(long or works, TOO_LONG)
        return self.take(graph, deque(works), sizes, ahead=ahead)

    def _makes_too_large(self, node: Node, needs: Sizes) -> bool:
        """Return whether an output of a node takes more bytes than a constant may."""
        if self._largest < 0:
            return False
        return any(needs[value] > self._largest for value in node.outputs if value in needs)
