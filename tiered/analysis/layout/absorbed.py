"""Operators that a neighbour absorbs in some order: a Pad before a Conv, a bias behind one.

A Transpose between them prevents that. In the order in which no Transpose is left there, the passes
that follow make them part of their neighbour, so they take no time of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tiered.analysis.layout.equivalence import Operator, Port
from tiered.analysis.layout.permutation import Permutation
from tiered.graph import Node
from tiered.graph.queries.op_traits import ARITHMETIC

BEFORE: Final = frozenset({"AveragePool", "Conv", "MaxPool"})
"""Operators that absorb a Pad of their operand."""

AFTER: Final = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""Operators that absorb scales and biases of their result."""

SCALES: Final = frozenset({*ARITHMETIC, "BatchNormalization"})

MOST: Final = 4
"""Bound on the scales and biases in a row."""


def may_be_absorbed(operator: Operator) -> bool:
    """Return whether it is of a kind that neighbours absorb."""
    return operator.node.op_type == "Pad" or _is_one_of(operator.node, SCALES)


def is_absorbed(operator: Operator, number: int, operators: Mapping[Node, Operator]) -> bool:
    """Return whether a neighbour absorbs an operator that is written in an order."""
    if operator.node.op_type == "Pad":
        orders = operator.choices[number].orders
        return any(
            _is_padded(port, order)
            for port, order in zip(operator.ports, orders, strict=True)
            if port.is_output
        )
    for _ in range(MOST):
        above = _scaled(operator, number)
        if above is None:
            return False
        producer, port, order = above
        if _is_one_of(producer, AFTER):
            return order == port.tensor.identity
        found = operators.get(producer)
        place = None if found is None else found.find(port.tensor, order)
        if found is None or place is None:
            return False
        operator, number = found, place
    return False


def _is_one_of(node: Node, names: Collection[str]) -> bool:
    return not node.domain and node.op_type in names


def _is_padded(port: Port, order: Permutation) -> bool:
    """Return whether an operator with pads of its own reads a tensor in an order."""
    views = [value for value, view in port.tensor.views.items() if view == order]
    return any(
        use.slot == 0 and _is_one_of(use.node, BEFORE)
        for value in views
        for use in port.tensor.uses[value]
    )


def _scaled(operator: Operator, number: int) -> tuple[Node, Port, Permutation] | None:
    """Return what makes the only operand that is no constant, if it is scaled or shifted here."""
    if not _is_one_of(operator.node, SCALES):
        return None
    read = [(at, port) for at, port in enumerate(operator.ports) if not port.is_output]
    if len(read) != 1:
        return None
    at, port = read[0]
    producer = port.tensor.root.producer
    if producer is None:
        return None
    return producer, port, operator.choices[number].orders[at]
