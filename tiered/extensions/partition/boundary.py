"""The boundary of a set of nodes: what it reads from outside, and what is used outside of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from tiered.graph import Graph, Node, Value
from tiered.support.errors import ModelError


class Boundary(NamedTuple):
    """The values that cross the boundary of a set of nodes.

    Attributes:
        inputs: values from outside, constants included, in the order of their first use; captures
            of bodies count.
        outputs: values that are used outside: read by other nodes or their bodies, outputs of the
            graph, or named by training info and annotations.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    @property
    def variables(self) -> tuple[Value, ...]:
        """The inputs that are no constants."""
        return tuple(value for value in self.inputs if not value.is_constant)

    @property
    def constants(self) -> tuple[Value, ...]:
        """The inputs that are constants: initializers, and outputs of Constant nodes."""
        return tuple(value for value in self.inputs if value.is_constant)


def boundary_of(nodes: Sequence[Node]) -> Boundary:
    """Return the boundary of nodes of one graph, producers first."""
    inside = set(nodes)
    inputs = dict.fromkeys(
        value for node in nodes for value in node.reads if value.producer not in inside
    )
    made = [value for node in nodes for value in node.outputs if value is not None]
    outputs = (value for value in made if is_used_outside(value, inside))
    return Boundary(tuple(inputs), tuple(outputs))


def is_used_outside(value: Value, inside: Collection[Node]) -> bool:
    """Return whether a value of a set of nodes is used outside of the set."""
    if value.pins or value.graph in value.output_of:
        return True
    return any(reader not in inside for reader in value.readers)


def graph_of(nodes: Iterable[Node]) -> Graph:
    """Return the graph that all the nodes are in.

    Raises:
        ModelError: there are no nodes, one was removed, or they are in different graphs.
    """
    graphs = list(dict.fromkeys(node.owner for node in nodes))
    if not graphs:
        raise ModelError("a partition has no nodes; expected at least one")
    if len(graphs) > 1:
        raise ModelError(
            f"a partition has nodes of {graphs[0]!r} and of {graphs[1]!r}; expected nodes of one "
            "graph: make one partition for each graph"
        )
    return graphs[0]
