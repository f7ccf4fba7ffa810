"""Groups: nodes that return to float together, where this costs few Casts and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tiered.graph import DataType, Node
from tiered.numerics.precision.cast_plan import CAST, Price, plan_of
from tiered.numerics.precision.variables import TypeVariable

_PRICES: Final = ((500 * CAST, 100 * CAST), (500 * CAST, 0), (60 * CAST, 0))
"""What it costs in each ranking that all bytes of weights, and that all nodes, are float.

If nodes cost much, groups are small; if weights cost little, products stay with their neighbours.
"""

_STEPS: Final = 48
_GROWTH: Final = 2**0.5
"""The noise of the whole model costs a Cast in the first step, and more by a factor in each."""


Groups = list[tuple[Node, ...]]
"""Nodes in the order in which they return to float, those of a group together."""


def rankings_of(
    variables: Sequence[TypeVariable], nodes: Sequence[Node], noise: Mapping[Node, float]
) -> list[Groups]:
    """Return different orders in which nodes may return to float, all of `nodes` in each.

    Args:
        variables: of the model, as far as they are decided.
        nodes: those that may return.
        noise: the error that a node adds to the outputs in the narrower type, as a norm.
    """
    rankings = [_groups(variables, nodes, noise, *prices) for prices in _PRICES]
    return [each for at, each in enumerate(rankings) if each not in rankings[:at]]


def _groups(
    variables: Sequence[TypeVariable],
    nodes: Sequence[Node],
    noise: Mapping[Node, float],
    price_of_weights: int,
    price_of_nodes: int,
) -> Groups:
    """Return groups of nodes.

    For each price of noise a minimum cut has the least sum of noise, of Casts, and of the bytes of
    weights in float. The higher the price, the more nodes are float, and none is narrow again: what
    a step adds is a group. The last has all others.
    """
    total = sum(noise.get(node, 0.0) ** 2 for node in nodes)
    bytes_of = {node: weight_bytes(node) for node in nodes}
    all_bytes = sum(bytes_of.values()) or 1
    groups, found = list[tuple[Node, ...]](), dict[Node, None]()
    for step in range(_STEPS if total else 0):
        if len(found) == len(nodes):
            break
        factor = CAST * _GROWTH**step / total
        prices = {
            node: Price(
                price_of_weights * bytes_of[node] // all_bytes + price_of_nodes // len(nodes) + 1,
                int(factor * noise.get(node, 0.0) ** 2),
            )
            for node in nodes
        }
        low = {each.node for each in plan_of(variables, prices).low if not each.is_free}
        group = tuple(node for node in nodes if node not in low and node not in found)
        if group:
            groups.append(group)
            found.update(dict.fromkeys(group))
    rest = tuple(node for node in nodes if node not in found)
    return [*groups, rest] if rest else groups


def weight_bytes(node: Node) -> int:
    """Return the bytes of the constants of floats that a node reads."""
    constants = (value for value in node.inputs if value is not None and value.is_constant)
    return sum(
        value.tensor.nbytes
        for value in constants
        if value.tensor is not None and value.dtype == DataType.FLOAT
    )
