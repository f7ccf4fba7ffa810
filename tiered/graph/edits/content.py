"""Exchanging all that a model holds for another ModelProto, as one edit that can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.journal import Edit

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import Model

_CONTENT: Final = (
    "skeleton",
    "main",
    "functions",
    "opset_imports",
    "spellings",
    "names",
    "node_names",
    "is_inferred",
    "dims",
    "types_stamp",
)
"""The attributes of a Model that are its content; the others are its identity and its history."""


def exchange_content(model: Model, proto: onnx.ModelProto) -> None:
    """Make the model hold what a ModelProto says; it stays the same `Model`, with its journal.

    The nodes and values of before are removed ones then. A node which is called like one of before
    is taken to have been made from it.

    Raises:
        ModelError: the ModelProto makes no graph.
    """
    from tiered.graph.io.load import load_model

    fresh = type(model)(model.folder, model.source)
    # Serial numbers go on: what is younger has the larger one.
    fresh._serial = model._serial
    load_model(fresh, proto)
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
    # It has no history, but its journal knows it.
    fresh.journal.clear()


def write_content(model: Model, content: dict[str, Any]) -> None:
    """Let the model hold this content; what it held is removed."""
    for graph in model.graphs():
        _set_graph(graph, None)
    for name, held in content.items():
        setattr(model, name, held)
    for graph in _graphs(model.main, model.functions):
        _set_graph(graph, graph)


def _set_graph(contents: Graph, graph: Graph | None) -> None:
    """Say of all that a graph contains where it is; None for removed."""
    for node in contents._nodes.values():
        node.graph = graph
    for value in contents._values.values():
        value.graph = graph


def _graphs(main: Graph, functions: list[Any]) -> Iterator[Graph]:
    """Yield every graph below these, without asking nodes where they are."""
    pending = [main, *functions]
    while pending:
        graph = pending.pop()
        yield graph
        pending += (body for _, node in sorted(graph._owners.items()) for body in node.bodies)
