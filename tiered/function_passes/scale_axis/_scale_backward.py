"""The way of a scale back to weights: through all producers that together compute a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.graph import DataType
from tiered.rewriter.idioms.scale import (
    Rescaled,
    Scale,
    absorb_after,
    broadcasts_along,
    pass_scale,
    refusal,
    scaled_constants,
)
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

# Longer ways than those of rotary embeddings are not searched.
_MOST_NODES: Final = 64

# f(s * x, s * y) = s * f(x, y); and operators of which a factor may scale either operand.
_OF_ALL_OPERANDS: Final = ("Add", "Concat", "Sub")
_BILINEAR: Final = ("MatMul", "Mul")


class ScaleBackward:
    """Search of the constants with which producers compute a value scaled.

    A value with several consumers is scaled only if all of them want the same scale.

    Args:
        graph: the graph whose scales move; the search stays valid while constants change and
            nodes are removed, but not when nodes are added.
    """

    def __init__(self, graph: Graph) -> None:
        self._places = {node: at for at, node in enumerate(graph.topological_order())}

    def into_producers(self, x: Value, user: Node, slot: int, scale: Scale) -> Rescaled | Skip:
        """Return the new constants with which `x` is scaled where a node reads it, or why not.

        Args:
            x: the value.
            user, slot: the node, and which of its inputs; the only use of x.
            scale: the scale.
        """
        way = _Way(self._places)
        return way.request(x, user, slot, scale) or way.follow()


class _Way:
    """Scales that nodes are asked for, the last nodes first, and the constants that took some."""

    def __init__(self, places: Mapping[Node, int], steps: int = 0) -> None:
        self._places, self._steps = places, steps
        self._requests: dict[Node, dict[int, Scale]] = {}
        self._uses: set[tuple[Node, int]] = set()
        self._plan: Rescaled = {}

    def _copy(self) -> _Way:
        copy = _Way(self._places, self._steps)
        copy._requests = {node: dict(scales) for node, scales in self._requests.items()}
        copy._uses, copy._plan = set(self._uses), dict(self._plan)
        return copy

    def request(self, x: Value, user: Node, slot: int, scale: Scale) -> Skip | None:
        """Ask the producer of a value for a scale, or scale the value, if it is a constant."""
        if x.is_constant:
            scaled = scaled_constants(user, {slot: scale.spread(x.rank or 0)})
            if isinstance(scaled, Skip):
                return scaled
            self._plan.update(scaled)
            return None
        node = x.producer
        if node is None or node not in self._places:
            return Skip("{} has no producer in this graph", x.name)
        self._uses.add((user, slot))
        scales = self._requests.setdefault(node, {})
        known = scales.setdefault(node.outputs.index(x), scale)
        if known.axis != scale.axis or not np.array_equal(known.factors, scale.factors):
            return Skip("the consumers of {} have different scales", x.name)
        return None

    def follow(self) -> Rescaled | Skip:
        """Return the constants that take all scales, or why some scale remains."""
        while self._requests:
            self._steps += 1
            if self._steps > _MOST_NODES:
                return Skip("the way to a weight has more than {} nodes", _MOST_NODES)
            # All consumers of the last of these nodes have asked.
            node = max(self._requests, key=self._places.__getitem__)
            scales = self._requests.pop(node)
            refused = self._all_asked(node, scales)
            if refused is not None:
                return refused
            if not node.domain and node.op_type in _BILINEAR and self._is_of_variables(node):
                return self._either(node, scales[0])
            refused = self._step(node, scales)
            if refused is not None:
                return refused
        return self._plan

    def _all_asked(self, node: Node, scales: dict[int, Scale]) -> Skip | None:
        for index in scales:
            x = node.outputs[index]
            assert x is not None  # what was asked for is a value
            if x.output_of or x.pins or not self._uses.issuperset(x.users):
                return Skip("{} has other consumers", x.name)
        return None

    def _is_of_variables(self, node: Node) -> bool:
        return not any(x.is_constant for x in node.reads)

    def _either(self, node: Node, scale: Scale) -> Rescaled | Skip:
        """Scale one of two factors: the first one whose whole way ends in weights."""
        if scale.axis is not None:
            return refusal(node, scale)
        refusals = list[Skip]()
        for slot, operand in enumerate(node.inputs):
            assert operand is not None
            way = self._copy()
            found = way.request(operand, node, slot, scale) or way.follow()
            self._steps = way._steps  # all ways together are bounded
            if not isinstance(found, Skip):
                return found
            refusals.append(found)
        return refusals[0]

    def _step(self, node: Node, scales: dict[int, Scale]) -> Skip | None:
        """Ask the producers of a node for what it was asked, or let its constants take it."""
        if not node.domain and node.op_type == "Split":
            return self._split(node, scales)
        if set(scales) != {0}:
            return Skip("{} does not commute with a scale", node.op_type)
        scale = scales[0]
        if not node.domain and node.op_type in _OF_ALL_OPERANDS:
            return self._operands(node, scale)
        data = _numerator(node) if scale.axis is None else None
        if data is not None:
            slot, x = data
            return self.request(x, node, slot, scale)
        inner, passed = node.input(0), pass_scale(node, scale, back=True)
        if inner is not None and not isinstance(passed, Skip):
            return self.request(inner, node, 0, passed)
        scaled = absorb_after(node, scale)
        if scaled is None:
            return refusal(node, passed)
        if isinstance(scaled, Skip):
            return scaled
        self._plan.update(scaled)
        return None

    def _operands(self, node: Node, scale: Scale) -> Skip | None:
        """Scale all operands of a sum or Concat, each along its own axis."""
        along = broadcasts_along(node)
        if along is not None:
            return along
        if _may_overflow(node, scale):
            return Skip("scaled terms of a float16 sum may overflow")
        rank = node.output.rank
        for slot, operand in enumerate(node.inputs):
            if operand is None or operand.rank is None or rank is None:
                return Skip("the rank of an operand is not known")
            axis = None if scale.axis is None else scale.axis - (rank - operand.rank)
            if axis is not None and (axis < 0 or operand.dim(axis) != scale.factors.size):
                return Skip("{} has no axis for the factors", operand.name)
            refused = self.request(operand, node, slot, Scale(scale.factors, axis))
            if refused is not None:
                return refused
        return None

    def _split(self, node: Node, scales: dict[int, Scale]) -> Skip | None:
        """Scale the parts of a Split: the factors of its axis, 1 for parts that stay."""
        if node.has_references:
            return Skip("Split: {}", node.parameter_reason)
        x, axis = node.given(0), int(node.attr("axis"))
        if x.rank is None:
            return Skip("the rank of an operand is not known")
        axis %= x.rank
        factors = list[np.ndarray]()
        for index, part in enumerate(node.outputs):
            size = None if part is None else part.dim(axis)
            scale = scales.get(index, Scale(np.ones(1)))
            if not isinstance(size, int) or scale.axis not in (None, axis):
                return Skip("the sizes of the parts of Split are not known")
            factors.append(np.broadcast_to(scale.factors, (size,)))
        along = np.concatenate(factors)
        is_one = bool((along == along[0]).all()) if along.size else False
        whole = Scale(along[:1]) if is_one else Scale(along, axis)
        return self.request(x, node, 0, whole)


def _may_overflow(node: Node, scale: Scale) -> bool:
    """Return whether scaled terms of a sum may exceed float16 where the scaled sum does not."""
    is_sum = node.op_type != "Concat" and sum(not x.is_constant for x in node.reads) > 1
    is_half = node.output.dtype == DataType.FLOAT16
    return is_sum and is_half and bool((np.abs(scale.factors) > 1).any())


def _numerator(node: Node) -> tuple[int, Value] | None:
    """Return the operand of a Mul or Div that may be scaled; None of other nodes."""
    if node.domain or node.op_type not in ("Div", "Mul"):
        return None
    slot = int(node.op_type == "Mul" and node.given(0).is_constant)
    return slot, node.given(slot)
