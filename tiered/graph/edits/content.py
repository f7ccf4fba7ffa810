"""The content of a model as a whole: replaced or freed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.edit import Edit
from tiered.graph.core.model import CLOSED
from tiered.graph.core.names import TakenNames

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_CONTENT: Final = (
    "skeleton",
    "main",
    "functions",
    "opset_imports",
    "spellings",
    "names",
    "node_names",
    "types",
    "dims",
)
"""The attributes of a Model that are its content; the others are its identity and its history."""


def exchange_content(model: ModelState, fresh: ModelState) -> None:
    """Move the content of a fresh model into another one with its own identity and journal.

    The former nodes and values count as removed. A former node is the source of a new node with
    the same label.
    """
    earlier = {node.label: node for graph in model.graphs() for node in graph.nodes}
    for graph in _graphs(fresh.main, fresh.functions):
        graph.model = model
        for node in graph.nodes:
            source = earlier.get(node.label)
            node.sources = (source,) if node.label and source is not None else ()
    before = {name: getattr(model, name) for name in _CONTENT}
    model.main._log(Edit.EXCHANGE_CONTENT, model, before)
    model._serial = fresh._serial
    write_content(model, {name: getattr(fresh, name) for name in _CONTENT})
    # Its journal, which is empty, refers to it.
    fresh.journal.clear()


def write_content(model: ModelState, content: dict[str, Any]) -> None:
    """Set the content of a model; the nodes and values of the present one become removed ones."""
    for graph in model.graphs():
        _set_graph(graph, None)
    for name, held in content.items():
        setattr(model, name, held)
    for graph in _graphs(model.main, model.functions):
        _set_graph(graph, graph)


def _set_graph(contents: Graph, graph: Graph | None) -> None:
    """Set the graph of all nodes and values that a graph contains; None marks them as removed."""
    for node in contents._nodes.values():
        node.graph = graph
    for value in contents._values.values():
        value.graph = graph


def _graphs(main: Graph, functions: list[Any]) -> Iterator[Graph]:
    """Yield every graph at or below these, without the `graph` of their nodes."""
    pending = [main, *functions]
    while pending:
        graph = pending.pop()
        yield graph
        pending += (body for _, node in sorted(graph._body_nodes.items()) for body in node.bodies)


def close_model(model: ModelState) -> None:
    """Free a model: each node and value becomes a removed one.

    Nodes and values refer to each other, so an unused view is a set of reference cycles: its memory
    would not be freed before the next full garbage collection. A node keeps its operator, operands
    and outputs; a graph keeps its model, so that an edit raises.
    """
    graphs = list(model.graphs())
    for edit, subject, *before in model.journal.entries:
        if edit in (Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER):
            _close_nodes((subject,), graphs)
        elif edit is Edit.REMOVE_CONSTANT:
            _close_values((subject,))
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
    model.remembered.clear()
    model.names, model.node_names = TakenNames(), TakenNames()
    model.origin = model._main = None


def _close_graph(graph: Graph, graphs: list[Graph]) -> None:
    _close_nodes(graph._nodes.values(), graphs)
    _close_values(graph._values.values())
    for named in (graph._nodes, graph._values, graph._by_op, graph._body_nodes, graph._constants):
        named.clear()
    for listed in (graph._inputs, graph._outputs, graph._input_infos, graph._output_infos):
        listed.clear()
    graph.declarations.clear()
    graph.annotations.clear()
    graph.parent_node = graph._order = graph._dag = None


def _close_nodes(nodes: Iterable[Node], graphs: list[Graph]) -> None:
    """Cut the references from nodes to their graph, and from their outputs to them."""
    for node in nodes:
        if node.graph is None:
            # Its bodies were removed with it, and the model does not list them.
            graphs += node.bodies
            _close_values(node._outputs)
        node.graph = None


def _close_values(values: Iterable[Value | None]) -> None:
    """Cut the references from values to their graph, producer and users."""
    for value in values:
        if value is not None:
            value.graph = value.producer = value.input_of = value._captures = None
            value.output_of = ()
            value._users.clear()
