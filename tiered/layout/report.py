"""The report: what a placement saves, and why each Transpose that is left cannot go."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tiered.graph import Model, Node
from tiered.layout.convert import place_transposes, wiring_of
from tiered.layout.cost import Cost, LayoutSizes, strands_of
from tiered.layout.counting import moved_bytes, transposes_of, transposing
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.permutation import Permutation
from tiered.layout.reach import Wiring
from tiered.layout.region import Region
from tiered.rewriter import Skip


@dataclass(frozen=True, slots=True)
class LeftTranspose:
    """A Transpose that stays, what it moves, and what stops it on either side."""

    name: str
    perm: Permutation
    nbytes: int
    above: str
    below: str


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """What the Transposes of a model cost, before and after.

    Attributes:
        transposes: how many there are: before, after.
        nbytes: what they move: before, after.
        greedy: Transposes and bytes if each operator, in its turn, took the order in which it costs
            the least there.
        left: those that stay, the heaviest first.
    """

    transposes: tuple[int, int]
    nbytes: tuple[int, int]
    greedy: Cost
    left: tuple[LeftTranspose, ...]


def layout_report(model: Model, sizes: LayoutSizes | None = None) -> LayoutReport:
    """Return what `convert_layout` does to the Transposes of a model, which it edits.

    Args:
        model: edited in place, as the pass would.
        sizes: what dynamic dims count.
    """
    sizes = sizes or LayoutSizes()
    before = wiring_of(model)
    was = transposing(before, sizes)
    free = before.free
    whole = Region(before, free, strands_of(free, sizes))
    gain, here = whole.cost(greedy(whole)), whole.cost(dict.fromkeys(free, 0))
    place_transposes(model, sizes, _ignore)
    after = wiring_of(model)
    now = transposing(after, sizes)
    left = sorted(_left(after, sizes), key=lambda each: -each.nbytes)
    return LayoutReport(
        (was.transposes, now.transposes),
        (was.nbytes, now.nbytes),
        Cost(
            was.nbytes - here.nbytes + gain.nbytes,
            was.transposes - here.transposes + gain.transposes,
        ),
        tuple(left),
    )


def _ignore(node: Node | None, reason: Skip) -> None:
    """Say nothing: the report tells more."""


def greedy(region: Region) -> dict[Operator, int]:
    """Return the placement in which each operator takes what is cheapest where it stands."""
    state = dict.fromkeys(region.operators, 0)
    for operator in region.operators:
        wires = [port.wire for port in operator.ports]
        best = region.cost(state, wires)
        for number in operator.open[1:]:
            kept = state[operator]
            state[operator] = number
            cost = region.cost(state, wires)
            if cost < best:
                best = cost
            else:
                state[operator] = kept
    return state


# --- reasons --------------------------------------------------------------------------------------

FAR = 200
"""Operators that are asked before the search for what stops a Transpose is given up."""


def _left(wiring: Wiring, sizes: LayoutSizes) -> Iterator[LeftTranspose]:
    for node, wire in transposes_of(wiring):
        perm = node.perm
        assert perm is not None
        identity, order = wire.identity, wire.views[node.output]
        producer = wire.root.producer
        above = _interface(wire) if producer is None else _stops(wiring, wire, producer, order)
        reasons = [_stops(wiring, wire, user, identity) for user, _ in node.output.users]
        if node.output.output_of:
            reasons.insert(0, f"graph output '{node.output.name}'")
        yield LeftTranspose(
            node.label, perm, moved_bytes(node, wire, sizes), above, "; ".join(_few(reasons))
        )


def _interface(wire: Wire) -> str:
    """Return which input or output of its graph a wire is; nothing for any other wire."""
    kind = "graph" if wire.root.owner.is_main else "body or function"
    if wire.root.producer is None:
        return f"{kind} input '{wire.root.name}'"
    names = [view.name for view in wire.views if view.output_of]
    return f"{kind} output '{names[0]}'" if names else ""


def _few(reasons: Iterable[str], most: int = 3) -> list[str]:
    listed = list(dict.fromkeys(reasons))
    more = [f"and {len(listed) - most} more"] if len(listed) > most else []
    return [*listed[:most], *more]


def _stops(wiring: Wiring, wire: Wire, node: Node, order: Permutation) -> str:
    """Return what keeps an operator from having a wire in another order.

    That is the operator itself, or the first behind it that cannot follow.
    """
    pending = deque([(wire, node, order)])
    seen = {node}
    while pending and len(seen) < FAR:
        wire, asked, order = pending.popleft()
        name = _name(asked)
        via = "" if asked is node else f", reached through {_name(node)}"
        operator = wiring.operator(asked)
        if operator is None:
            return f"{name}: {wiring.passage(asked)}{via}"
        number = operator.find(wire, order)
        if number is None:
            return f"{name}: its axes cannot be in that order{via}"
        for port, wanted in zip(operator.ports, operator.choices[number].orders, strict=True):
            if port.wire is wire or wanted == port.view:
                continue
            if _interface(port.wire):
                return f"{_interface(port.wire)}, reached through {_name(node)}"
            around = dict.fromkeys(port.wire.users)
            pending.extend((port.wire, other, wanted) for other in around if other not in seen)
            seen.update(around)
    return f"{_name(node)}: in that order, more bytes would be moved"


def _name(node: Node) -> str:
    """Return what a node is, and what it is called."""
    domain = f"{node.domain}::" if node.domain else ""
    return f"{domain}{node.op_type} '{node.label}'"
