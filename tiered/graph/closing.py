"""Taking a view apart, so that counting references is enough to free it.

Nodes and values know each other, so that a view that nobody holds any more is garbage in circles:
the collector would look at each piece, and until it does the memory is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiered.graph.journal import Edit
from tiered.graph.names import Names

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.model import Model
    from tiered.graph.node import Node
    from tiered.graph.value import Value


def close_model(model: Model) -> None:
    """Leave the model empty: each node as one that was removed, each value as one of no graph.

    A node that somebody kept still says what it is, what it reads and what it gives.
    """
    graphs = list(model.graphs())
    for edit, subject, *_ in model.journal.entries:
        if edit in (Edit.REMOVE_NODE, Edit.SETTLE):
            _close_nodes((subject,), graphs)
        elif edit is Edit.REMOVE_CONSTANT:
            _close_value(subject)
    for graph in graphs:
        _close_graph(graph, graphs)
    model.journal.clear()
    model.functions.clear()
    model._analyses.clear()
    model.names, model.node_names = Names(), Names()
    model.origin = None


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
