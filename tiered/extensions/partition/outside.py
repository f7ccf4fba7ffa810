"""The graphs of a model that are not inside of regions: where nodes are marked and cut out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tiered.graph import Function, Graph, Model, Node
from tiered.graph.core.marks import COMPILER, is_left_alone

_Functions = Mapping[tuple[str, str, str], Function]


def graphs_outside_of_regions(model: Model) -> Iterator[Graph]:
    """Yield the graphs that no marked node contains: by its bodies, or by a call, at any depth.

    A function comes after all that calls it, and a body after its node: marks that a graph gets
    when it is yielded count, too. A function that is called from inside and from outside of regions
    is inside. Functions that belong to a target are not yielded.
    """
    import networkx as nx

    functions = {function.id: function for function in model.functions}
    order = [each for each in nx.topological_sort(model.call_graph()) if each in functions]
    inside: set[Graph] = set()
    for root in (model.main, *(functions[key] for key in order)):
        pending: list[Graph] = [root]
        while pending:
            graph = pending.pop()
            inside.update(_marked_contents(graph, functions))
            if not is_left_alone(graph) and graph not in inside:
                yield graph
                inside.update(_marked_contents(graph, functions))
            else:
                inside.update(each for node in graph.nodes for each in _contents(node, functions))
            around = reversed(graph.body_nodes)
            pending += (body for node in around for body in reversed(node.bodies))


def _marked_contents(graph: Graph, functions: _Functions) -> Iterator[Graph]:
    for node in graph.nodes:
        if node.proto.metadata_props and node.metadata.get(COMPILER):
            yield from _contents(node, functions)


def _contents(node: Node, functions: _Functions) -> Iterator[Graph]:
    """Yield the function that a node calls, and its bodies with all that is called in them."""
    called = functions.get(node.callee)
    if called is not None:
        yield called
    for body in node.bodies:
        yield body
        for inner in body.nodes:
            yield from _contents(inner, functions)
