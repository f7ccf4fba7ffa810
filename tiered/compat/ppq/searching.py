"""SearchableGraph: paths, sets and patterns of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq.base_graph import BaseGraph
from tiered.compat.ppq.elements import Operation, operation_of
from tiered.graph import Graph, Node
from tiered.rewriter.subgraphs import graph_search
from tiered.support.errors import UsageError

Slots: TypeAlias = Mapping[tuple[int, int], tuple[int | None, int | None]]
OperationTest: TypeAlias = str | Callable[[Operation], bool]
Relay: TypeAlias = Callable[[Operation, Operation], bool]


class Path(list[Operation]):
    """The operations of one path, in order.

    Args:
        operations: some, or one.
    """

    def __init__(self, operations: Operation | Iterable[Operation] = ()) -> None:
        super().__init__([operations] if isinstance(operations, Operation) else operations)

    def append(self, operation: Operation) -> Self:  # type: ignore[override]  # as PPQ's
        """Add an operation at the end, and return the path."""
        super().append(operation)
        return self

    def append_left(self, operation: Operation) -> Self:
        """Add an operation at the start, and return the path."""
        self.insert(0, operation)
        return self

    def copy(self) -> Path:
        return Path(self)

    def tolist(self) -> list[Operation]:
        return list(self)


class OperationSet(set[Operation]):
    """Operations without an order.

    Raises:
        TypeError: something is no operation.
    """

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        super().__init__(map(_checked, operations))

    def add(self, operation: Operation) -> None:
        super().add(_checked(operation))

    def update(self, *others: Iterable[Operation]) -> None:
        for each in others:
            super().update(map(_checked, each))

    def filter(self, condition: Callable[[Operation], bool]) -> Self:
        """Remove the operations that meet a condition, and return the set."""
        self.difference_update([each for each in self if condition(each)])
        return self


def _checked(operation: object) -> Operation:
    if not isinstance(operation, Operation):
        raise TypeError(f"an OperationSet holds operations, not {operation!r}")
    return operation


@checks_arguments
class SearchableGraph(BaseGraph):
    """A `Graph` to be searched: `path_matching`, `opset_matching` and `pattern_matching`.

    Args:
        graph: it, or a BaseGraph of it.
    """

    def __init__(self, graph: Graph | BaseGraph) -> None:
        super().__init__(graph.graph if isinstance(graph, BaseGraph) else graph)

    def path_matching(
        self, sp_expr: OperationTest, rp_expr: Relay, ep_expr: OperationTest, direction: Any = "up"
    ) -> list[Path]:
        found = graph_search.path_matching(
            self.graph, _test(sp_expr), _relay(rp_expr), _test(ep_expr), direction
        )
        return [Path(map(operation_of, path)) for path in found]

    def opset_matching(
        self,
        sp_expr: OperationTest,
        rp_expr: Relay,
        ep_expr: OperationTest | None,
        direction: Any = "up",
    ) -> OperationSet:
        end = None if ep_expr is None else _test(ep_expr)
        found = graph_search.opset_matching(
            self.graph, _test(sp_expr), _relay(rp_expr), end, direction
        )
        return OperationSet(map(operation_of, found))

    def pattern_matching(
        self,
        patterns: Sequence[OperationTest],
        edges: Iterable[Sequence[int]],
        exclusive: bool = True,
        max_candidates: int = graph_search.MOST_CANDIDATES,
        *,
        slots: Slots | None = None,
    ) -> list[list[Operation]]:
        return GraphPattern(patterns, edges, slots).match(self, exclusive, max_candidates)


@checks_arguments
class GraphPattern:
    """Patterns and edges for `pattern_matching`, which may be used again and again.

    Raises:
        UsageError: the edges make no acyclic, connected graph of the patterns.
    """

    def __init__(
        self,
        node_patterns: Sequence[OperationTest] = (),
        edges: Iterable[Sequence[int]] = (),
        slots: Slots | None = None,
        *,
        patterns: Sequence[OperationTest] = (),
    ) -> None:
        self.node_patterns = [*node_patterns, *patterns]
        self.edges = [_edge(edge) for edge in edges]
        self.slots = dict(slots or {})
        graph_search.search_order(len(self.node_patterns), self.edges, self.slots)

    def match(
        self,
        graph: BaseGraph,
        exclusive: bool = True,
        max_candidates: int = graph_search.MOST_CANDIDATES,
    ) -> list[list[Operation]]:
        found = graph_search.pattern_matching(
            graph.graph,
            [_test(pattern) for pattern in self.node_patterns],
            self.edges,
            exclusive,
            slots=self.slots,
            max_candidates=max_candidates,
        )
        return [[operation_of(node) for node in match] for match in found]


def _edge(edge: Sequence[int]) -> tuple[int, int]:
    if len(edge) != 2:
        raise UsageError(f"an edge has the numbers of two patterns, not {edge}")
    return edge[0], edge[1]


PatternTree = GraphPattern


class TypeExpr(str):
    """The test whether an operation is of a type."""

    __slots__ = ()

    def __call__(self, operation: Operation) -> bool:
        return operation.type == self


def _test(wanted: OperationTest) -> graph_search.NodeTest:
    return wanted if isinstance(wanted, str) else lambda node: wanted(operation_of(node))


def _relay(wanted: Relay) -> Callable[[Node, Node], bool]:
    return lambda node, after: wanted(operation_of(node), operation_of(after))
