"""Probabilities that a logarithm reads: a narrower type makes 0 of those that are small."""

from __future__ import annotations

from typing import Final

from tiered.analysis.roles.role import Narrow, Role, data_of, nodes_of
from tiered.graph import Model, Node
from tiered.graph.queries.op_traits import MOVES_ELEMENTS, RING, SELECTS_EXTREMES

_PROBABILITIES: Final = frozenset({"Exp", "Sigmoid", "Softmax", "Softplus"})
"""Operators that compute positive numbers, however small."""

_BETWEEN: Final = (
    (MOVES_ELEMENTS | RING | SELECTS_EXTREMES | {"Clip", "ReduceMean", "ReduceSum"})
    - {"Neg"}  # Neg makes no probability
)

_LEAST: Final = 1e-30
"""A type that holds so small a number makes 0 of no probability that matters."""


def probability_roles(model: Model, narrow: Narrow) -> dict[Node, Role]:
    """Return the nodes from a Softmax, Sigmoid, Exp or Softplus to a logarithm of its results.

    Args:
        model: the model.
        narrow: the narrower type.
    """
    found = dict[Node, None]()
    if narrow.holds(_LEAST):
        return {}
    reaches = set[Node]()
    for node in nodes_of(model):
        is_reached = any(value.producer in reaches for value in data_of(node))
        if node.op_type in _PROBABILITIES or (is_reached and node.op_type in _BETWEEN):
            reaches.add(node)
        if node.op_type == "Log" and is_reached:
            found.update(_way(node, reaches))
    return dict.fromkeys(found, Role("probability", "a logarithm of it is infinite if it is 0"))


def _way(end: Node, reaches: set[Node]) -> dict[Node, None]:
    """Return a node, and those that probabilities pass on the way to it."""
    found = dict[Node, None]()
    pending = [end]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found[node] = None
        if node.op_type in _PROBABILITIES:
            continue
        producers = (value.producer for value in data_of(node))
        pending += [each for each in producers if each in reaches]
    return found
