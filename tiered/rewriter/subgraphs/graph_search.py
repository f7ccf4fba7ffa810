"""Searching a graph: paths, sets of nodes, and patterns given as nodes and edges.

For interactive use; passes match with the pattern language, which is anchored and much faster.
Every search has a limit, beyond which it raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tiered.support.errors import SearchLimitError, UsageError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

NodeTest: TypeAlias = "str | Callable[[Node], bool]"
"""An operator by its name, whatever its domain, or a predicate of nodes."""

Relay: TypeAlias = "Callable[[Node, Node], bool]"
"""Returns whether a path may continue from one node to the next."""

Direction = Literal["up", "down"]

COMPUTING_OPS: Final = frozenset(
    {"Conv", "ConvTranspose", "FusedConv", "FusedGemm", "FusedMatMul", "Gemm", "MatMul"}
)
"""The operators, of any domain, that do most of the arithmetic."""

MOST_PATHS: Final = 100_000
MOST_CANDIDATES: Final = 1_000_000


def path_matching(
    graph: Graph,
    start: NodeTest,
    relay: Relay,
    end: NodeTest,
    direction: Direction = "up",
    *,
    max_paths: int = MOST_PATHS,
) -> list[tuple[Node, ...]]:
    """Return every path from a start over relays to the first end on it.

    Args:
        graph: the graph to search.
        start, end: the nodes that a path may begin and end with.
        relay: called with (node, next) for each step to a node that is no end.
        direction: "up" against the flow of data, "down" with it.
        max_paths: the largest number of paths.

    Raises:
        SearchLimitError: there are more of them.
        UsageError: there is no such direction.
    """
    is_start, is_end, step = _test(start), _test(end), _step(direction)
    steps = _steps_on_paths(graph, is_start, relay, is_end, step)
    paths: list[tuple[Node, ...]] = []
    for begin in filter(is_start, graph.topological_order()):
        # Every step is on some path, so the work is linear in the output.
        path, pending = [begin], [iter(steps.get(begin, ()))]
        while pending:
            after = next(pending[-1], None)
            if after is None:
                pending.pop()
                path.pop()
            elif is_end(after):
                if len(paths) == max_paths:
                    raise SearchLimitError(f"there are more than {max_paths:,} paths")
                paths.append((*path, after))
            else:
                path.append(after)
                pending.append(iter(steps[after]))
    return paths


def opset_matching(
    graph: Graph,
    start: NodeTest,
    relay: Relay,
    end: NodeTest | None,
    direction: Direction = "up",
) -> tuple[Node, ...]:
    """Return the nodes that lie on some path of `path_matching`, by serial number.

    Without an end: the starts, and whatever relays lead to from there. This takes linear time.

    Raises:
        UsageError: there is no such direction.
    """
    is_start, step = _test(start), _step(direction)
    found: set[Node] = set()
    if end is None:
        pending = [node for node in graph.nodes if is_start(node)]
        found.update(pending)
        while pending:
            node = pending.pop()
            new = [after for after in step(node) if after not in found and relay(node, after)]
            found.update(new)
            pending += new
        return tuple(sorted(found))
    for node, afters in _steps_on_paths(graph, is_start, relay, _test(end), step).items():
        if afters:
            found.add(node)
            found.update(afters)
    return tuple(sorted(found))


def pattern_matching(
    graph: Graph,
    patterns: Sequence[NodeTest],
    edges: Iterable[tuple[int, int]],
    exclusive: bool = True,
    *,
    slots: Mapping[tuple[int, int], tuple[int | None, int | None]] | None = None,
    max_candidates: int = MOST_CANDIDATES,
) -> list[tuple[Node, ...]]:
    """Return the tuples of distinct nodes that match the patterns and are linked by the edges.

    Args:
        graph: the graph to search.
        patterns: a test for each node.
        edges: pairs of indices into `patterns`, from producer to consumer; nodes may have more.
        exclusive: whether a node with an edge to it may have only constants as further inputs, and
            the outputs of a node with an edge from it no further consumers, bodies and graph
            outputs included.
        slots: for some edges, the output of the producer and the input of the consumer; None: any.
        max_candidates: the largest number of partial matches to try.

    Returns:
        the nodes of each match in the order of the patterns, sorted by serial numbers.

    Raises:
        SearchLimitError: there are more partial matches.
        UsageError: the edges make no acyclic, connected graph of the patterns.
    """
    pairs = [(int(tail), int(head)) for tail, head in edges]
    wanted = dict(slots or {})
    order = search_order(len(patterns), pairs, wanted)
    tests = [_test(pattern) for pattern in patterns]
    found: list[tuple[Node, ...]] = []
    bound: dict[int, Node] = {}
    taken: set[Node] = set()
    looked = 0

    def candidates(place: int) -> Iterator[Node]:
        near = _neighbours(place, pairs, bound)
        for node in graph.nodes if near is None else near:
            if node in taken or not tests[place](node):
                continue
            if _linked(place, node, pairs, bound, wanted):
                yield node

    pending = [candidates(order[0])]
    while pending:
        place = order[len(pending) - 1]
        if place in bound:
            taken.discard(bound.pop(place))
        node = next(pending[-1], None)
        if node is None:
            pending.pop()
            continue
        looked += 1
        if looked > max_candidates:
            raise SearchLimitError(f"there are more than {max_candidates:,} partial matches")
        bound[place] = node
        taken.add(node)
        if len(pending) < len(order):
            pending.append(candidates(order[len(pending)]))
            continue
        match = tuple(bound[at] for at in range(len(patterns)))
        if not exclusive or _is_exclusive(match, pairs):
            found.append(match)
    return sorted(found)


# --- helpers --------------------------------------------------------------------------------------


def _test(wanted: NodeTest) -> Callable[[Node], bool]:
    if not isinstance(wanted, str):
        return wanted
    return lambda node: node.op_type == wanted


def _step(direction: str) -> Callable[[Node], Sequence[Node]]:
    match direction:
        case "up":
            return _producers_of
        case "down":
            return _users_of
        case _:
            raise UsageError(f"the direction is 'up' or 'down', not {direction!r}")


def _producers_of(node: Node) -> list[Node]:
    return node.predecessors


def _users_of(node: Node) -> list[Node]:
    return node.successors


def _steps_on_paths(
    graph: Graph,
    is_start: Callable[[Node], bool],
    relay: Relay,
    is_end: Callable[[Node], bool],
    step: Callable[[Node], Sequence[Node]],
) -> dict[Node, list[Node]]:
    """Return, for each node reachable from a start, the next nodes that can reach an end."""
    steps: dict[Node, list[Node]] = {}
    pending = [node for node in graph.nodes if is_start(node)]
    before: dict[Node, list[Node]] = {}
    leads: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in steps:
            continue
        steps[node] = []
        for after in step(node):
            if is_end(after):
                leads.add(node)
            elif relay(node, after):
                before.setdefault(after, []).append(node)
                pending.append(after)
            else:
                continue
            steps[node].append(after)
    back = list(leads)
    while back:
        for node in before.get(back.pop(), ()):
            if node not in leads:
                leads.add(node)
                back.append(node)
    return {
        node: [after for after in afters if is_end(after) or after in leads]
        for node, afters in steps.items()
    }


def search_order(
    count: int, edges: Sequence[tuple[int, int]], slots: Mapping[tuple[int, int], object]
) -> list[int]:
    """Return the places so that each has an edge to or from one before it.

    Raises:
        UsageError: the edges make no acyclic, connected graph.
    """
    import networkx as nx

    shape: nx.DiGraph[int] = nx.DiGraph()
    shape.add_nodes_from(range(count))
    for tail, head in edges:
        if not (0 <= tail < count and 0 <= head < count):
            raise UsageError(f"edge {(tail, head)} is outside of the {count} patterns")
    shape.add_edges_from(edges)
    if unknown := set(slots) - set(edges):
        raise UsageError(f"slots are given for {sorted(unknown)}, which is no edge")
    if not count or not nx.is_directed_acyclic_graph(shape):
        raise UsageError("the edges form a cycle" if count else "there are no patterns")
    if not nx.is_weakly_connected(shape):
        raise UsageError("the patterns are not connected by the edges")
    both = shape.to_undirected()
    # From the last node up: most nodes have fewer producers than users.
    last = max(place for place in range(count) if not shape.out_degree(place))
    return [last, *(head for _, head in nx.bfs_edges(both, last))]


def _neighbours(
    place: int, edges: Sequence[tuple[int, int]], bound: Mapping[int, Node]
) -> Sequence[Node] | None:
    for tail, head in edges:
        if tail == place and head in bound:
            return bound[head].predecessors
        if head == place and tail in bound:
            return bound[tail].successors
    return None


def _linked(
    place: int,
    node: Node,
    edges: Sequence[tuple[int, int]],
    bound: Mapping[int, Node],
    slots: Mapping[tuple[int, int], tuple[int | None, int | None]],
) -> bool:
    """Return whether a node has all edges to the bound nodes."""
    for tail, head in edges:
        if tail == place and head in bound:
            first, second = node, bound[head]
        elif head == place and tail in bound:
            first, second = bound[tail], node
        else:
            continue
        if not has_edge(first, second, *slots.get((tail, head), (None, None))):
            return False
    return True


def has_edge(tail: Node, head: Node, output: int | None, index: int | None) -> bool:
    """Return whether a node reads another: this input (None: any, or a body) this output."""
    for at, value in enumerate(head.inputs):
        if value is None or value.producer is not tail or value.graph is not head.graph:
            continue
        if (index is None or at == index) and (output is None or value.index == output):
            return True
    return index is None and any(
        value.producer is tail and (output is None or value.index == output)
        for value in head.captured
    )


def _is_exclusive(match: Sequence[Node], edges: Iterable[tuple[int, int]]) -> bool:
    nodes, pairs = set(match), list(edges)
    for head in dict.fromkeys(head for _, head in pairs):
        for producer in match[head].predecessors:
            if producer not in nodes and producer.op_type != "Constant":
                return False
    for tail in dict.fromkeys(tail for tail, _ in pairs):
        if not nodes.issuperset(match[tail].successors):
            return False
        if any(value is not None and value.is_graph_output for value in match[tail].outputs):
            return False
    return True
