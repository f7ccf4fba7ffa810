"""A wire of a region, and what it costs that it is read in orders in which nobody makes it.

It is the bytes of the wire for each such order, paid once however many read it so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tiered.graph import DataType
from tiered.graph.symbols import Poly
from tiered.layout.permutation import Permutation
from tiered.layout.wires import Operator, Wire

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
