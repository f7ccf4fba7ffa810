"""The layout report: bytes saved, and the reason why each remaining Transpose stays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tiered.analysis.layout.cost import (
    Cost,
    moved_bytes,
    tensor_costs_of,
    transpose_cost,
    transposes_of,
)
from tiered.analysis.layout.equivalence import LayoutOperator, TensorClass
from tiered.analysis.layout.layout_conversion import place_transposes, reach_of
from tiered.analysis.layout.layout_region import LayoutRegion
from tiered.analysis.layout.permutation import Permutation
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.work import estimate_work
from tiered.graph import Graph, Model, Node
from tiered.rewriter import Skip


@dataclass(frozen=True, slots=True)
class LeftTranspose:
    """A Transpose that remains, the bytes it moves, and what blocks it on either side."""

    name: str
    perm: Permutation
    nbytes: int
    above: str
    below: str


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """The cost of the Transposes of a model, before and after.

    Attributes:
        transposes: their number: before, after.
        nbytes: the bytes they move: before, after.
        greedy: the cost if each operator, one after the other, took its locally cheapest order.
        left: those that remain, most bytes first.
    """

    transposes: tuple[int, int]
    nbytes: tuple[int, int]
    greedy: Cost
    left: tuple[LeftTranspose, ...]


def layout_report(model: Model, sizes: LayoutSizes | None = None) -> LayoutReport:
    """Convert a model as `convert_layout` does, and return a report of its Transposes.

    Args:
        model: edited in place, as the pass would.
        sizes: the sizes of dynamic dims.
    """
    sizes = sizes or LayoutSizes()
    before = reach_of(model)
    was = transpose_cost(before, sizes)
    free = before.free
    estimate_work(before, free, sizes)
    whole = LayoutRegion(before, free, tensor_costs_of(free, sizes))
    gain, here = whole.cost(greedy(whole)), whole.cost(dict.fromkeys(free, 0))
    place_transposes(model, sizes, _ignore)
    after = reach_of(model)
    now = transpose_cost(after, sizes)
    return LayoutReport(
        (was.transposes, now.transposes),
        (was.nbytes, now.nbytes),
        Cost(
            was.nbytes - here.nbytes + gain.nbytes,
            was.transposes - here.transposes + gain.transposes,
        ),
        _most_bytes_first(_left(after, sizes)),
    )


def left_transposes(model: Model) -> tuple[LeftTranspose, ...]:
    """Return the Transposes of a model, most bytes first; nothing is edited."""
    return _most_bytes_first(_left(reach_of(model), LayoutSizes()))


def _most_bytes_first(left: Iterable[LeftTranspose]) -> tuple[LeftTranspose, ...]:
    return tuple(sorted(left, key=lambda each: -each.nbytes))


def _ignore(node: Node | None, reason: Skip) -> None:
    """Ignore a skip: the report has the reasons."""


def greedy(region: LayoutRegion) -> dict[LayoutOperator, int]:
    """Return the assignment in which each operator takes its locally cheapest order."""
    assignment = dict.fromkeys(region.operators, 0)
    for operator in region.operators:
        best = region.cost(assignment, [operator])
        for number in operator.candidates[1:]:
            kept = assignment[operator]
            assignment[operator] = number
            cost = region.cost(assignment, [operator])
            if cost < best:
                best = cost
            else:
                assignment[operator] = kept
    return assignment


# --- reasons --------------------------------------------------------------------------------------

FAR = 200
"""Bound on the operators that are searched for the reason why a Transpose remains."""


def _left(reach: Reach, sizes: LayoutSizes) -> Iterator[LeftTranspose]:
    for node, tensor in transposes_of(reach):
        perm = node.perm
        assert perm is not None
        identity, order = tensor.identity, tensor.views[node.output]
        producer = tensor.root.producer
        above = _interface(tensor) if producer is None else _stops(reach, tensor, producer, order)
        reasons = [_stops(reach, tensor, user, identity) for user, _ in node.output.users]
        if node.output.output_of:
            reasons.insert(0, f"{_kind(node.owner)} output '{node.output.name}'")
        yield LeftTranspose(
            node.label, perm, moved_bytes(node, tensor, sizes), above, "; ".join(_few(reasons))
        )


def _interface(tensor: TensorClass) -> str:
    """Return the graph input or output that a tensor is, as text; empty for other tensors."""
    kind = _kind(tensor.root.owner)
    if tensor.root.producer is None:
        return f"{kind} input '{tensor.root.name}'"
    names = [view.name for view in tensor.views if view.output_of]
    return f"{kind} output '{names[0]}'" if names else ""


def _kind(graph: Graph) -> str:
    return "graph" if graph.is_main else "body or function"


def _few(reasons: Iterable[str], most: int = 3) -> list[str]:
    listed = list(dict.fromkeys(reasons))
    more = [f"and {len(listed) - most} more"] if len(listed) > most else []
    return [*listed[:most], *more]


def _stops(reach: Reach, tensor: TensorClass, node: Node, order: Permutation) -> str:
    """Return why an operator cannot have a tensor in another order.

    The cause is the operator itself or the first one after it that cannot change its order.
    """
    pending = deque([(tensor, node, order)])
    seen = {node}
    while pending and len(seen) < FAR:
        tensor, asked, order = pending.popleft()
        name = _name(asked)
        via = "" if asked is node else f", reached through {_name(node)}"
        operator = reach.operator(asked)
        if operator is None:
            return f"{name}: {reach.propagation(asked)}{via}"
        number = operator.find(tensor, order)
        if number is None:
            return f"{name}: its axes cannot be in that order{via}"
        for port, wanted in zip(operator.ports, operator.choices[number].orders, strict=True):
            if port.tensor is tensor or wanted == port.view:
                continue
            if _interface(port.tensor):
                return f"{_interface(port.tensor)}, reached through {_name(node)}"
            around = dict.fromkeys(port.tensor.users)
            pending.extend((port.tensor, other, wanted) for other in around if other not in seen)
            seen.update(around)
    return f"{_name(node)}: in that order, more bytes would be moved"


def _name(node: Node) -> str:
    """Return the operator and the name of a node."""
    domain = f"{node.domain}::" if node.domain else ""
    return f"{domain}{node.op_type} '{node.label}'"
