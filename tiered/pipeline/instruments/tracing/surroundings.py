"""The nodes next to those of a rewrite, and the types of the values between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tiered.pipeline.instruments.tracing.changes import NodeState, Rewind, state_of

if TYPE_CHECKING:
    from tiered.graph import Node, Value, ValueType

MOST_NODES = 60
"""Nodes of a rewrite whose surroundings are recorded: a diagram shows fewer."""
MOST_READERS = 3
"""Consumers of one value that are recorded."""


class ValueState(NamedTuple):
    """The type of a value at one moment, and whether its contents are known."""

    type: ValueType | None
    is_constant: bool


class Surroundings(NamedTuple):
    """What is next to the nodes of a rewrite; plain data.

    Attributes:
        nodes: producers and consumers that the rewrite did not touch.
        values: by name, those that the nodes of the rewrite read and compute.
    """

    nodes: tuple[NodeState, ...] = ()
    values: dict[str, ValueState] = {}  # noqa: RUF012 - the field of a tuple, never written to


def surroundings_of(rewind: Rewind) -> Surroundings:
    """Return what is next to the nodes that edits touched; the edits must be the newest."""
    touched = rewind.nodes
    near: dict[int, Node] = {}
    values: dict[str, ValueState] = {}
    for past in islice(touched.values(), MOST_NODES):
        node = past.node
        is_live = node.graph is not None
        for value in (*past.inputs, *(node._inputs if is_live else ())):
            if value is not None:
                _add(value, rewind, values)
                if value.producer is not None:
                    near[value.producer.id] = value.producer
        for value in (*past.outputs, *(node._outputs if is_live else ())):
            if value is not None:
                _add(value, rewind, values)
                for reader in islice(value._users.values(), MOST_READERS):
                    near[reader.id] = reader
    return Surroundings(tuple(_states(near.values(), touched)), values)


def _add(value: Value, rewind: Rewind, values: dict[str, ValueState]) -> None:
    """Note a value under its present name, and under the one before the edits."""
    for name in {value.name, rewind.name_before(value)}:
        if name not in values:
            values[name] = ValueState(value.type, value.is_constant)


def _states(nodes: Iterable[Node], touched: Iterable[int]) -> Iterator[NodeState]:
    for node in nodes:
        if node.id not in touched and node.graph is not None:
            yield state_of(node)
