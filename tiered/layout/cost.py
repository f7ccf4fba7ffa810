"""A wire of a region, and what it costs that it is read in orders in which nobody makes it.

It is the bytes of the wire for each such order, paid once however many read it so.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from tiered.graph.core.dtypes import bits_of
from tiered.graph.shape_inference.symbolic_dims import Poly
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.permutation import Permutation

Place = tuple[Operator, int]
"""An operator, and which of its ports."""


class Cost(NamedTuple):
    """What a placement costs: bytes that are moved, and Transposes that move them."""

    nbytes: int
    transposes: int


FREE: Final = Cost(0, 0)
_STRING_BITS: Final = 64


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    nbytes, transposes = 0, 0
    for cost in costs:
        nbytes += cost.nbytes
        transposes += cost.transposes
    return Cost(nbytes, transposes)


class LayoutSizes(NamedTuple):
    """How many elements dims stand for: what the user says, and a guess for the others."""

    known: Mapping[str, int] = MappingProxyType({})
    default: int = 16

    def nbytes(self, wire: Wire) -> int:
        """Return the bytes of a wire."""
        value = wire.root
        dims = value.owner.model.dims
        width = 4.0 if value.dtype is None else (bits_of(value.dtype) or _STRING_BITS) / 8
        return math.ceil(width * math.prod(self._size(dims.size(dim)) for dim in wire.shape))

    def _size(self, size: int | Poly | None) -> int:
        if size is None:
            return self.default
        if isinstance(size, int):
            return size
        return max(0, sum(
            factor * math.prod(self.known.get(name, self.default) for name in names)
            for names, factor in size.terms
        ))  # fmt: skip


@dataclass(eq=False, slots=True)
class Strand:
    """One wire: which free operators make it and read it, and which orders all others want.

    Attributes:
        wire: the wire.
        nbytes: what a Transpose of it moves.
        producer: where it is made; None where its order is nobody's to choose.
        readers: where it is read.
        pinned: the orders in which others read it.
    """

    wire: Wire
    nbytes: int
    producer: Place | None = None
    readers: list[Place] = field(default_factory=list)
    pinned: set[Permutation] = field(default_factory=set)
    _has_ones: bool = False

    def __post_init__(self) -> None:
        self._has_ones = 1 in self.wire.shape

    @property
    def places(self) -> Iterator[Place]:
        """Yield where free operators have it."""
        if self.producer is not None:
            yield self.producer
        yield from self.readers

    def is_only_of(self, operator: Operator) -> bool:
        """Tell whether no other free operator has a say in it."""
        if self.producer is not None and self.producer[0] is not operator:
            return False
        return {operator}.issuperset([reader for reader, _ in self.readers])

    def moving(self, order: Permutation) -> Permutation:
        """Return what of an order matters to the data: the axes that are not of size 1."""
        if not self._has_ones:
            return order
        shape = self.wire.shape
        return tuple([axis for axis in order if shape[axis] != 1])

    def cost(self, made: Permutation, wanted: Iterable[Permutation]) -> Cost:
        """Return what it costs that orders are wanted where one is made."""
        others = {order for order in wanted if order != made}
        if not others:
            return FREE
        if not self._has_ones:
            return Cost(self.nbytes * len(others), len(others))
        moves = {self.moving(order) for order in others} - {self.moving(made)}
        return Cost(self.nbytes * len(moves), len(others))

    def fix(self, operator: Operator) -> None:
        """Take an operator for one of the others: it stays as it is."""
        if self.producer is not None and self.producer[0] is operator:
            self.producer = None
        self.pinned.update(each.ports[at].view for each, at in self.readers if each is operator)
        self.readers = [place for place in self.readers if place[0] is not operator]


def strands_of(operators: Iterable[Operator], sizes: LayoutSizes) -> dict[Wire, Strand]:
    """Return the strands of all wires that free operators may have in several orders."""
    strands: dict[Wire, Strand] = {}
    # Most wires of a model are of few types.
    nbytes: dict[Hashable, int] = {}
    for operator in operators:
        others = [operator.choices[number].orders for number in operator.open if number]
        for at, port in enumerate(operator.ports):
            wire, view = port.wire, port.view
            if {view}.issuperset([orders[at] for orders in others]):
                continue
            strand = strands.get(wire)
            if strand is None:
                key = wire.shape, wire.root.dtype
                if key not in nbytes:
                    nbytes[key] = sizes.nbytes(wire)
                strand = strands[wire] = Strand(wire, nbytes[key])
            if port.is_output:
                strand.producer = operator, at
            else:
                strand.readers.append((operator, at))
    for strand in strands.values():
        strand.pinned = _pinned(strand)
    return strands


def _pinned(strand: Strand) -> set[Permutation]:
    """Return the orders in which a wire is read by others than free operators."""
    wire = strand.wire
    free = {(operator.node, operator.ports[at].slot) for operator, at in strand.readers}
    return {
        view
        for value, view in wire.views.items()
        if value.output_of or value.pins or not free.issuperset(wire.uses[value])
    }
