"""Regions: operators that permutations pass, joined by wires, and the orders that they may have.

A state of an operator is 0, as it is, or the number of a candidate: an order of all axes of the
region, which gives each wire and each operator one order. What a placement costs is the bytes of
every wire for each order in which somebody reads it and nobody makes it, paid once however many
read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tiered.graph import DataType
from tiered.graph.symbols import Poly
from tiered.layout.passage import insert_missing
from tiered.layout.permutation import Permutation
from tiered.layout.wires import Operator, Wire, Wiring

MOST_CANDIDATES: Final = 6

State = Mapping[Operator, int]

Place = tuple[Operator, int]
"""An operator, and which of its ports."""


class Cost(NamedTuple):
    """What a placement costs: bytes that are moved, and Transposes that move them."""

    nbytes: int
    transposes: int


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    nbytes, transposes = 0, 0
    for cost in costs:
        nbytes += cost.nbytes
        transposes += cost.transposes
    return Cost(nbytes, transposes)


@dataclass(frozen=True)
class Sizes:
    """How many elements dims stand for: what the user says, and a guess for the others."""

    known: Mapping[str, int] = field(default_factory=dict)
    default: int = 16

    def nbytes(self, wire: Wire) -> int:
        """Return the bytes of a wire."""
        value = wire.root
        assert value.shape is not None
        dims = value.owner.model.dims
        width = 4.0 if value.dtype is None else _width(value.dtype)
        return math.ceil(width * math.prod(self._size(dims.size(dim)) for dim in value.shape))

    def _size(self, size: int | Poly | None) -> int:
        if size is None:
            return self.default
        if isinstance(size, int):
            return size
        return max(0, sum(
            factor * math.prod(self.known.get(name, self.default) for name in names)
            for names, factor in size.terms
        ))  # fmt: skip


def _width(dtype: int) -> float:
    name = DataType(dtype).name
    if name.endswith("INT4") or name.startswith("FLOAT4"):
        return 0.5
    return 0.25 if name.endswith("INT2") else float(DataType(dtype).numpy.itemsize)


@dataclass(eq=False)
class Strand:
    """One wire of a region: who makes it and reads it there, and which orders others want.

    Attributes:
        wire: the wire.
        nbytes: what a Transpose of it moves.
        producer: where it is made; None where its order is not the region's to say.
        readers: where it is read.
        pinned: the orders in which others read it.
    """

    wire: Wire
    nbytes: int
    producer: Place | None = None
    readers: list[Place] = field(default_factory=list)
    pinned: set[Permutation] = field(default_factory=set)

    def moving(self, order: Permutation) -> Permutation:
        """Return what of an order matters to the data: the axes that are not of size 1."""
        shape = self.wire.root.shape
        assert shape is not None
        return tuple(axis for axis in order if shape[axis] != 1)

    def cost(self, made: Permutation, wanted: Iterable[Permutation]) -> Cost:
        """Return what it costs that orders are wanted where one is made."""
        others = {order for order in wanted if order != made}
        if not others:
            return Cost(0, 0)
        moves = {self.moving(order) for order in others} - {self.moving(made)}
        return Cost(self.nbytes * len(moves), len(others))


class Region:
    """Operators whose orders are chosen together."""

    def __init__(self, wiring: Wiring, operators: Sequence[Operator], sizes: Sizes) -> None:
        self.wiring = wiring
        self.operators = list(operators)
        self.strands: dict[Wire, Strand] = {}
        for operator in self.operators:
            for at, port in enumerate(operator.ports):
                strand = self.strands.get(port.wire)
                if strand is None:
                    strand = self.strands[port.wire] = Strand(port.wire, sizes.nbytes(port.wire))
                if port.is_output:
                    strand.producer = operator, at
                else:
                    strand.readers.append((operator, at))
        for strand in self.strands.values():
            strand.pinned = self._pinned(strand)
        self.candidates = _candidates(self)
        self._targets: dict[tuple[Operator, int], int | None] = {}
        self._orders: dict[tuple[Operator, int], list[Permutation]] = {}
        self._labels: dict[tuple[Operator, int], tuple[int, ...]] = {}

    def _pinned(self, strand: Strand) -> set[Permutation]:
        """Return the orders in which the wire is read by what is not of the region."""
        ports = {(operator.node, operator.ports[at].slot) for operator, at in strand.readers}
        views = strand.wire.views
        pinned = set()
        for value, view in views.items():
            uses = (use for use in value.users if use not in ports)
            others = (node for node, _ in uses if node.outputs[:1] and node.outputs[0] not in views)
            if value.output_of or value.pins or any(True for _ in others):
                pinned.add(view)
        return pinned

    # --- states -----------------------------------------------------------------------------------

    def target(self, operator: Operator, state: int) -> int | None:
        """Return the state that an operator has where it follows a candidate.

        0 where nothing of it changes then; None where there is no such operator.
        """
        key = operator, state
        if key not in self._targets:
            self._targets[key] = self._find_target(operator, state)
        return self._targets[key]

    def _find_target(self, operator: Operator, state: int) -> int | None:
        order = self.labels(operator, state)
        if all(port.order(order) == port.view for port in operator.ports):
            return 0
        return state if operator.passage.allows(order) else None

    def labels(self, operator: Operator, state: int) -> tuple[int, ...]:
        """Return the labels of an operator in the order of a candidate."""
        key = operator, state
        if key not in self._labels:
            places, own, axis = self.candidates[state - 1], operator.axes, self.wiring.axis
            last = len(places)
            place_of = {label: places.get(axis(own[label]), last) for label in own}
            labels = operator.passage.labels
            self._labels[key] = tuple(sorted(labels, key=lambda label: place_of.get(label, last)))
        return self._labels[key]

    def order(self, operator: Operator, at: int, state: int) -> Permutation:
        """Return the order in which an operator in a state has the wire of a port."""
        key = operator, state
        orders = self._orders.get(key)
        if orders is None:
            labels = self.labels(operator, state) if state else ()
            ports = operator.ports
            orders = [port.order(labels) if state else port.view for port in ports]
            self._orders[key] = orders
        return orders[at]

    def cost(self, state: State, wires: Iterable[Wire] | None = None) -> Cost:
        """Return what a placement costs, or what it costs on some wires."""
        strands: Iterable[Strand] = self.strands.values()
        if wires is not None:
            strands = [self.strands[wire] for wire in dict.fromkeys(wires)]
        return total(self._strand_cost(strand, state) for strand in strands)

    def _strand_cost(self, strand: Strand, state: State) -> Cost:
        made = self.made(strand, state)
        wanted = {self.order(each, at, state[each]) for each, at in strand.readers}
        return strand.cost(made, wanted | strand.pinned)

    def made(self, strand: Strand, state: State) -> Permutation:
        """Return the order in which a wire is made."""
        if strand.producer is None:
            return tuple(range(strand.wire.rank))
        operator, at = strand.producer
        return self.order(operator, at, state[operator])


def regions(wiring: Wiring, sizes: Sizes) -> Iterator[Region]:
    """Yield the regions of a model: operators that no contested wire joins are apart."""
    seen: set[Operator] = set()
    by_wire: dict[Wire, list[Operator]] = {}
    for operator in wiring.operators.values():
        for wire in _contested(operator):
            by_wire.setdefault(wire, []).append(operator)
    for start in wiring.operators.values():
        if start in seen or not _contested(start):
            continue
        seen.add(start)
        found, pending = [], [start]
        while pending:
            operator = pending.pop()
            found.append(operator)
            for wire in _contested(operator):
                for other in by_wire[wire]:
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
        yield Region(wiring, sorted(found, key=lambda each: each.node.id), sizes)


def _contested(operator: Operator) -> list[Wire]:
    return list(dict.fromkeys(port.wire for port in operator.ports if port.wire.is_contested))


# --- candidates -----------------------------------------------------------------------------------


def _candidates(region: Region) -> list[dict[int, int]]:
    """Return the orders to choose from: those that wires have, the heaviest first."""
    weights: dict[tuple[int, ...], int] = {}
    for wire, strand in region.strands.items():
        for order in wire.orders if wire.is_contested else ():
            names = region.wiring.names(wire, order)
            weights[names] = weights.get(names, 0) + strand.nbytes
    anchors = sorted(weights, key=lambda names: (-len(names), -weights[names]))
    found: dict[tuple[int, ...], None] = {}
    for anchor in anchors:
        if not any(_is_part(anchor, order) for order in found):
            found[_extended(region, anchor)] = None
        if len(found) == MOST_CANDIDATES:
            break
    return [{name: at for at, name in enumerate(order)} for order in found]


def _is_part(names: Sequence[int], order: Sequence[int]) -> bool:
    remaining = iter(order)
    return all(name in remaining for name in names)


def _extended(region: Region, anchor: Sequence[int]) -> tuple[int, ...]:
    """Return an order of all axes of a region, which continues that of some of them."""
    order = list(anchor)
    known = set(order)
    pending = list(region.operators)
    while pending:
        rest = [operator for operator in pending if not _extend(region, operator, order, known)]
        if len(rest) == len(pending):
            # What nothing leads to begins on its own.
            known.update(_names_of(region, pending[0]).values())
            order += [name for name in known if name not in order]
        pending = rest
    return tuple(order)


def _names_of(region: Region, operator: Operator) -> dict[int, int]:
    """Return the name of each label that a wire has."""
    return {label: region.wiring.axis(number) for label, number in operator.axes.items()}


def _extend(region: Region, operator: Operator, order: list[int], known: set[int]) -> bool:
    """Place the axes of an operator, if the place of one of them is known; tell whether it was."""
    names = _names_of(region, operator)
    if names and known.isdisjoint(names.values()):
        return False
    if not known.issuperset(names.values()):
        have = sorted(
            (label for label, name in names.items() if name in known),
            key=lambda label: order.index(names[label]),
        )
        completed = operator.passage.completed(tuple(have))
        sequence = dict.fromkeys(names[label] for label in completed if label in names)
        insert_missing(order, tuple(sequence))
        known.update(sequence)
    return True
