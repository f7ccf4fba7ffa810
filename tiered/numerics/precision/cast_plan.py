"""The plan of a conversion: the type of each variable, with the fewest Casts between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from tiered.graph import Graph, Node, Value
from tiered.numerics.precision.variables import TypeVariable, VariableUse
from tiered.support.max_flow import SINK, SOURCE, UNLIMITED, Network

_ITERATIONS: Final = 8
"""How often a loop is taken to run, when Casts inside and outside of it are compared."""


class CastPlan(NamedTuple):
    """Which values and uses have the narrower type.

    Attributes:
        low: the variables of the narrower type.
        kept: the others, each with its reason.
    """

    low: tuple[TypeVariable, ...]
    kept: tuple[tuple[TypeVariable, str], ...]

    @property
    def kept_nodes(self) -> tuple[tuple[Node, str], ...]:
        """The nodes that stay float, wholly or in part, each with its reasons."""
        pairs = ((variable.node, reason) for variable, reason in self.kept)
        return tuple(dict.fromkeys((node, reason) for node, reason in pairs if node is not None))


CAST: Final = 1000
"""The price of a Cast, in the unit of `Price`."""


class Price(NamedTuple):
    """What it costs that a node computes in one type or the other.

    Attributes:
        wide: the price of float.
        low: the price of the narrower type.
    """

    wide: int
    low: int


def plan_of(
    variables: Sequence[TypeVariable], prices: Mapping[Node, Price] = MappingProxyType({})
) -> CastPlan:
    """Decide the type of each variable.

    A variable that need not stay float and computes is of the narrower type. One that only moves
    elements has the type that needs the fewest Casts, a Cast for each value and type: this is a
    minimum cut, between what must be narrow and what must be float. Of two types that need as many
    it gets the narrower one.

    Args:
        variables: of a model.
        prices: nodes that may compute in either type.
    """
    network, numbers = Network(), dict[TypeVariable, int]()
    for variable in variables:
        numbers[variable] = network.add_node()
        if variable.kept:
            network.add_edge(numbers[variable], SINK)
        elif not variable.is_free:
            price = None if variable.node is None else prices.get(variable.node)
            network.add_edge(SOURCE, numbers[variable], UNLIMITED if price is None else price.wide)
            if price is not None:
                network.add_edge(numbers[variable], SINK, price.low)
    _add_costs(network, numbers)
    is_wide = network.sink_side()
    low = tuple(variable for variable in variables if not is_wide[numbers[variable]])
    kept = (variable for variable in variables if is_wide[numbers[variable]])
    return CastPlan(
        low, tuple((each, each.kept or "between values that keep their type") for each in kept)
    )


def _add_costs(network: Network, numbers: dict[TypeVariable, int]) -> None:
    """Add the cost of a Cast for each value that is read in another type than it is computed in."""
    producers = {value: variable for variable in numbers for value in variable.values}
    readers = defaultdict[Value, dict[TypeVariable, None]](dict)
    for variable in numbers:
        for use in variable.uses:
            value = read_value(use)
            if value in producers and not value.is_constant:
                readers[value][variable] = None
    for value, variables in readers.items():
        producer, cost = numbers[producers[value]], _cost(value)
        others = [numbers[each] for each in variables if each is not producers[value]]
        if not others:
            continue
        # The source side is narrow: one node for "some reader is wide", one for "is narrow".
        to_wide, to_low = network.add_node(), network.add_node()
        network.add_edge(producer, to_wide, cost)
        network.add_edge(to_low, producer, cost)
        for other in others:
            network.add_edge(to_wide, other)
            network.add_edge(other, to_low)


def read_value(use: VariableUse) -> Value:
    """Return the value that a use reads."""
    values = use.reader.inputs if isinstance(use.reader, Node) else use.reader.outputs
    value = values[use.place]
    assert value is not None
    return value


def _cost(value: Value) -> int:
    """Return the cost of a Cast of a value, which is run as often as its graph."""
    graph: Graph | None = value.owner
    cost = CAST
    while graph is not None and graph.parent_node is not None:
        if graph.parent_node.op_type in ("Loop", "Scan"):
            cost *= _ITERATIONS
        graph = graph.parent_node.graph
    return cost
