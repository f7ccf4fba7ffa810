"""Taking a view apart, so that counting references is enough to free it.

Nodes and values know each other, so that a view that nobody holds any more is garbage in circles:
the collector would look at each piece, and until it does the memory is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from tiered.graph.core.journal import Edit
from tiered.graph.core.names import Names

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import Model
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

CLOSED: Final = "was closed and holds nothing any more: load it again, or keep a `.copy()` of it"


def close_model(model: Model) -> None:
    """Leave the model empty: each node as one that was removed, each value as one of no graph.

    A node that somebody kept still says what it is, what it reads and what it gives; a graph still
    knows its model, so that who edits it is told.
    """
    graphs = list(model.graphs())
    for edit, subject, *before in model.journal.entries:
        if edit in (Edit.REMOVE_NODE, Edit.SETTLE):
            _close_nodes((subject,), graphs)
        elif edit is Edit.REMOVE_CONSTANT:
            _close_value(subject)
        elif edit is Edit.REMOVE_FUNCTION:
            graphs.append(subject)
        elif edit is Edit.EXCHANGE_CONTENT:
            graphs += (before[0]["main"], *before[0]["functions"])
    for graph in graphs:
        _close_graph(graph, graphs)
    model.journal.clear()
    model.journal.frozen = f"it {CLOSED}"
    model.functions.clear()
    model._analyses.clear()
    model.names, model.node_names = Names(), Names()
    model.origin = model._main = None


def _close_graph(graph: Graph, graphs: list[Graph]) -> None:
    _close_nodes(graph._nodes.values(), graphs)
    for value in graph._values.values():
        _close_value(value)
    for named in (graph._nodes, graph._values, graph._by_op, graph._owners, graph._constants):
        named.clear()
    for listed in (graph._inputs, graph._outputs, graph._input_infos, graph._output_infos):
        listed.clear()
    graph.declarations.clear()
    graph.annotations.clear()
    graph.owner = graph._order = graph._dag = None


def _close_nodes(nodes: Iterable[Node], graphs: list[Graph]) -> None:
    """Cut what leads from nodes back to where they are, and from what they give to them."""
    for node in nodes:
        if node.graph is None:
            # Its bodies went with it, and the model does not list them.
            graphs += node.bodies
            for value in node._outputs:
                if value is not None:
                    _close_value(value)
        node.graph = None


def _close_value(value: Value) -> None:
    value.graph = value.producer = value.input_of = value._captures = None
    value.output_of = ()
    value._users.clear()
