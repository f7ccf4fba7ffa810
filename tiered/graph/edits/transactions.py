"""Transactions and checks for every edit: it is done whole or not at all, in its own graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar

from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

P = ParamSpec("P")
R = TypeVar("R")


def undone_on_error(
    edit: Callable[Concatenate[Graph, P], R],
) -> Callable[Concatenate[Graph, P], R]:
    """Make an edit of several steps a transaction: if one raises, all are undone."""

    @wraps(edit)
    def run(graph: Graph, /, *args: P.args, **kwargs: P.kwargs) -> R:
        journal = graph.model.journal
        mark = len(journal.entries)
        try:
            return edit(graph, *args, **kwargs)
        except BaseException:
            journal.undo_to(mark)
            raise

    return run


def check_node(graph: Graph, node: Node) -> None:
    """Raise if a node is not in the graph.

    Raises:
        ModelError: it was removed, or is in another graph.
    """
    if node.graph is not graph:
        raise ModelError(
            f"node {node.label!r} is in {node.owner!r}, not in {graph!r}; expected one of its nodes"
        )


def check_node_within(graph: Graph, node: Node) -> None:
    """Raise if a node is neither in the graph nor in a body below it.

    Raises:
        ModelError: it was removed, or is in another graph.
    """
    if node.graph is not graph and not node.owner.is_within(graph):
        check_node(graph, node)


def check_place(node: Node, index: int, kind: Literal["input", "output"]) -> None:
    """Raise if a node has no operand, or no output, of this index; it may be absent.

    Raises:
        ModelError: it has none; a negative index counts nothing.
    """
    places = node._inputs if kind == "input" else node._outputs
    if not 0 <= index < len(places):
        raise ModelError(f"node {node.label!r} has no {kind} {index}; it has {len(places)}")


def check_value(graph: Graph, value: Value) -> None:
    """Raise if a value is not in the graph.

    Raises:
        ModelError: it was removed, or is in another graph.
    """
    if value.graph is not graph:
        raise ModelError(
            f"{value!r} is in {value.owner!r}, not in {graph!r}; expected one of its values"
        )


def check_model(graph: Graph, value: Value) -> None:
    """Raise if a value is in no graph of the same model.

    Raises:
        ModelError: it was removed, or is in another model.
    """
    if value.graph is not graph and value.owner.model is not graph.model:
        raise ModelError(f"{value!r} is in another model than {graph!r}")


def check_free(graph: Graph, name: str, bearer: Value | None = None) -> None:
    """Check a new name of a value against the names of its graph, outer graphs and bodies.

    Args:
        graph: the graph of the value, now or after the edit.
        name: the new name.
        bearer: the value, if it is already in the model.

    Raises:
        ModelError: the name is empty or taken: it would shadow another value, or be shadowed.
    """
    if not name:
        raise ModelError(f"a value of graph {graph.name!r} needs a name that is not empty")
    if name not in graph.model.names:
        return
    if graph.value(name) not in (None, bearer) or _is_below(graph, name, bearer):
        raise ModelError(f"graph {graph.name!r} or an outer graph already has a value {name!r}")
    if _is_file_name(graph, name) or (bearer is not None and is_hidden(bearer, name)):
        raise ModelError(f"{name!r} is the name of an input or output of a body in the file")


def _is_file_name(graph: Graph, name: str) -> bool:
    """Return whether the graph, or an outer graph, has another value with this name in the file."""
    around: Graph | None = graph
    while around is not None:
        if name in around.file_names.values():
            return True
        around = around.parent
    return False


def is_hidden(value: Value, name: str) -> bool:
    """Return whether a body that reads the value has a value of its own with this name."""
    readers: list[Graph | None] = [node.graph for node in value._users.values()]
    for reader in (*readers, *value.output_of):
        graph = reader
        while graph is not None and graph is not value.graph:
            if name in graph.file_names.values():
                return True
            graph = graph.parent
    return False


def _is_below(graph: Graph, name: str, bearer: Value | None) -> bool:
    pending = [graph]
    while pending:
        for owner in pending.pop()._body_nodes.values():
            for body in owner.bodies:
                if body._values.get(name) not in (None, bearer):
                    return True
                pending.append(body)
    return False
