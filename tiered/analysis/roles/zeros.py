"""Small numbers that become 0 in a few bits, although a divisor or a logarithm reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from tiered.analysis.roles.epsilons import statistics_of
from tiered.analysis.roles.role import Role, nodes_of, readers_of
from tiered.graph import Model, Node, Value
from tiered.graph.queries.op_traits import AVERAGE_POOLS, MAX_POOLS, MOVES_ELEMENTS, REDUCTIONS

Lost = Callable[[Value, Node], float]
"""Returns the least magnitude of a value, if a node reads 0 instead; else 0."""

_KEEPS_ZERO: Final = (
    (MOVES_ELEMENTS - {"Pad", "Where"})
    | (set(REDUCTIONS) - {"ReduceLogSum", "ReduceLogSumExp"})
    | (AVERAGE_POOLS | MAX_POOLS)
    | {"Abs", "Neg", "Relu", "Sqrt"}
)
"""Operators that compute 0 from operands that are all 0."""


class LostNumber(NamedTuple):
    """A number that is not 0, and is read as 0.

    Attributes:
        value: it is an element of this.
        number: its magnitude.
        way: the nodes from the one that needs it back to the one that reads the value.
    """

    value: Value
    number: float
    way: tuple[Node, ...]


def lost_numbers(model: Model, lost: Lost) -> Iterator[LostNumber]:
    """Yield the numbers that divisions, logarithms and negative powers need, and read as 0.

    Operators on which 0 stays 0 may be on the way.

    Args:
        model: the model; its types are known.
        lost: of each value that a node reads in a few bits.
    """
    for node in nodes_of(model):
        slot = _divisor(node)
        value = None if slot is None else node.input(slot)
        pending = list[tuple[Value, tuple[Node, ...]]]()
        if value is not None:
            pending.append((value, (node,)))
        seen = set[tuple[Value, Node]]()
        while pending:
            at, way = pending.pop()
            if (at, way[-1]) in seen:
                continue
            seen.add((at, way[-1]))
            if number := lost(at, way[-1]):
                yield LostNumber(at, number, way)
            producer = at.producer
            if producer is not None and not producer.domain:
                pending += [(each, (*way, producer)) for each in _zeros_from(producer)]


def zero_roles(numbers: Iterable[LostNumber]) -> dict[Node, Role]:
    """Return the nodes that have to be float so that numbers are not lost.

    These are the ways, the nodes that compute the numbers, the sums and squares that they are added
    to, and the nodes that read an inverse of them: one scale has no room for it and for others.
    """
    found: dict[Node, Role] = {}
    for value, number, way in numbers:
        end, producer = way[0], value.producer
        role = Role("epsilon", f"{number:g} would be 0, and a {end.op_type} reads it")
        for each in way if producer is None else (*way, producer):
            found.setdefault(each, role)
        added = Role("statistic", f"{number:g} is added to it")
        for each in () if producer is None else statistics_of(producer):
            found.setdefault(each, added)
        inverse = Role("epsilon", f"it reads the inverse of {number:g}")
        for each in _readers_of_inverse(end):
            found.setdefault(each, inverse)
    return found


def _divisor(node: Node) -> int | None:
    """Return the operand that must not be 0; None if all may."""
    if node.op_type == "Div":
        return 1
    if node.op_type in ("Log", "Reciprocal"):
        return 0
    number = node.given(1).number if node.op_type == "Pow" else None
    return 0 if number is not None and number < 0 else None


def _zeros_from(node: Node) -> Iterator[Value]:
    """Yield the operands that make 0 of a result if they are 0."""
    power = node.given(1).number if node.op_type == "Pow" else None
    is_root = power is not None and power > 0
    if node.op_type in ("Concat", "Mul"):
        yield from node.reads
    elif node.op_type in _KEEPS_ZERO or node.op_type == "Div" or is_root:
        yield node.given(0)


def _readers_of_inverse(node: Node) -> dict[Node, None]:
    """Return the nodes that read the inverse that a node computes, behind movement too."""
    is_inverse = node.op_type in ("Pow", "Reciprocal")
    is_constant = node.op_type == "Div" and node.given(0).is_constant
    found = dict[Node, None]()
    pending = [node] if is_inverse or is_constant else []
    while pending:
        for reader, _ in readers_of(pending.pop()):
            if reader in found or reader.domain:
                continue
            found[reader] = None
            if reader.op_type in MOVES_ELEMENTS:
                pending.append(reader)
    return found
