"""Transactions and checks for every edit: it is done whole or not at all, in its own graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from tiered.errors import ModelError

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
        model = graph.model
        mark = model.mark()
        try:
            return edit(graph, *args, **kwargs)
        except BaseException:
            model.undo_to(mark)
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
