"""The call graph of local functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.node import domain_of
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState

Id = tuple[str, str, str]
"""(domain, name, overload) of a local function."""

MANY: Final = 10**18
"""Where sizes stop: functions that call each other twice in a row double with each of them."""


def call_graph(model: ModelState) -> nx.DiGraph[Any]:
    """Return the graph of `model.main` and function ids, with an edge to each callee."""
    import networkx as nx

    calls: nx.DiGraph[Any] = nx.DiGraph()
    calls.add_node(model.main)
    ids = {function.id for function in model.functions}
    calls.add_nodes_from(function.id for function in model.functions)
    for graph in model.graphs():
        for node in graph.nodes:
            if node.callee in ids:
                calls.add_edge(_caller(graph), node.callee)
    for proto in model.training_nodes():
        callee = (domain_of(proto.domain), proto.op_type, proto.overload)
        if callee in ids:
            calls.add_edge(model.main, callee)
    return calls


def check_callee(graph: Graph, callee: Id) -> None:
    """Raise if a call would make a function call itself, or the graph reach one that does.

    Raises:
        ModelError: it would.
    """
    model, root = graph.model, graph.root
    if not model.functions or model.function(*callee) is None:
        return
    import networkx as nx

    caller, calls = _caller(graph), _calls_from(model, callee)
    name = ".".join(part for part in callee[:2] if part)
    if caller in calls:
        raise ModelError(f"a call of {name!r} would make the function {root!r} call itself")
    if nx.is_directed_acyclic_graph(calls):
        return
    if not root.is_function or nx.has_path(call_graph(model), model.main, caller):
        raise ModelError(f"through {name!r}, the graph would reach a function that calls itself")


def _calls_from(model: ModelState, callee: Id) -> nx.DiGraph[Any]:
    """Return the part of the call graph that a function reaches; the other graphs are not read."""
    import networkx as nx

    functions = {function.id: function for function in model.functions}
    calls: nx.DiGraph[Any] = nx.DiGraph()
    calls.add_node(callee)
    pending, seen = [callee], {callee}
    while pending:
        caller = pending.pop()
        callees = {node.callee for node in functions[caller].walk()} & functions.keys()
        calls.add_edges_from((caller, found) for found in callees)
        pending += callees - seen
        seen |= callees
    return calls


def recursive_functions(model: ModelState) -> set[Id]:
    """Return the ids of the functions that call themselves, directly or indirectly."""
    import networkx as nx

    calls = call_graph(model)
    return {
        callee
        for component in nx.strongly_connected_components(calls)
        for callee in component
        if len(component) > 1 or calls.has_edge(callee, callee)
    }


def expanded_size(model: ModelState, kept: Collection[Id]) -> int:
    """Return the number of nodes after inlining every call, at most `MANY`.

    Args:
        model: the model; the nodes of its main graph and of kept functions count.
        kept: functions with calls that are not inlined; it must contain each recursive one.
    """
    import networkx as nx

    ids = {function.id for function in model.functions}.difference(kept)
    own: dict[Any, Counter[Id | None]] = {caller: Counter() for caller in (model.main, *ids, *kept)}
    for graph in model.graphs():
        callees = (node.callee for node in graph.nodes)
        own[_caller(graph)].update(callee if callee in ids else None for callee in callees)
    sizes: dict[Id | None, int] = {None: 1}

    def total(caller: Any) -> int:
        counts = own[caller]
        return min(MANY, sum(count * sizes[callee] for callee, count in counts.items()))

    calls = call_graph(model)
    calls.remove_nodes_from(set(calls) - ids)  # a view of a part would keep the model alive
    for callee in reversed(list(nx.topological_sort(calls))):
        sizes[callee] = total(callee)
    return min(MANY, sum(total(caller) for caller in (model.main, *kept)))


def _caller(graph: Graph) -> Any:
    root: Any = graph.root
    return root.id if root.is_function else root
