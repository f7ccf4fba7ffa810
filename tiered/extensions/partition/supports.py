"""Which nodes a target takes: classes, functions, tables of backends, patterns, and chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiered.rewriter import SubgraphMatcher
from tiered.support.errors import UsageError
from tiered.targets.shared_rules import check_operator

if TYPE_CHECKING:
    from tiered.graph import Graph, Node
    from tiered.rewriter.subgraphs.pattern_text import PatternLike
    from tiered.targets import Backend

COMPOSITES: Final = "tiered.composite"
"""The domain of the functions of composites."""

Dtypes = Sequence[int | None] | None


class OperatorSupport:
    """Decides whether a target takes a node; subclasses override `is_node_supported`.

    As it is, it reads a table: by operator (`Conv`, `com.microsoft::Gelu`), None for any dtypes, or
    the dtypes that each operand may have; None among them is any dtype.
    """

    def __init__(self, table: Mapping[str, Sequence[Dtypes] | None] | None = None) -> None:
        self.table = dict(table or {})

    def is_node_supported(self, graph: Graph, node: Node) -> bool:
        """Return whether the target takes a node of the graph."""
        name = node.operator
        if name not in self.table:
            return False
        wanted = self.table[name]
        if wanted is None:
            return True
        dtypes = [None if value is None else value.dtype for value in node.inputs]
        return all(
            allowed is None or dtype is None or None in allowed or dtype in allowed
            for dtype, allowed in zip(dtypes, wanted, strict=False)
        )


class FunctionSupport(OperatorSupport):
    """The support of the nodes for which a function returns True."""

    def __init__(self, function: Callable[[Graph, Node], bool]) -> None:
        super().__init__()
        self._function = function

    def is_node_supported(self, graph: Graph, node: Node) -> bool:
        return bool(self._function(graph, node))


def create_op_support(function: Callable[[Graph, Node], bool]) -> OperatorSupport:
    """Return the support of the nodes for which `function(graph, node)` returns True."""
    return FunctionSupport(function)


def chain(*supports: OperatorSupport) -> OperatorSupport:
    """Return the support of the nodes that all supports take; of all nodes if there is none."""
    return FunctionSupport(
        lambda graph, node: all(s.is_node_supported(graph, node) for s in supports)
    )


def any_chain(*supports: OperatorSupport) -> OperatorSupport:
    """Return the support of the nodes that one of the supports takes; of none if there is none."""
    return FunctionSupport(
        lambda graph, node: any(s.is_node_supported(graph, node) for s in supports)
    )


class PatternSupport(OperatorSupport):
    """The support of the nodes of all matches of some patterns; a match counts whole."""

    def __init__(self, patterns: Iterable[PatternLike], *, ignore_literals: bool = False) -> None:
        super().__init__()
        self._matchers = [SubgraphMatcher(p, ignore_literals=ignore_literals) for p in patterns]
        self._known: tuple[Any, Any, frozenset[Node]] = (None, None, frozenset())

    def is_node_supported(self, graph: Graph, node: Node) -> bool:
        of, stamp, nodes = self._known
        if of is not graph or graph.model.journal.moved_since(stamp):
            nodes = frozenset(self._nodes(graph))
            self._known = graph, graph.model.journal.stamp(), nodes
        return node in nodes

    def _nodes(self, graph: Graph) -> Iterable[Node]:
        from tiered.graph import Node as NodeOfGraph

        for matcher in self._matchers:
            for match in matcher.match(graph):
                found = match.nodes_map.values()
                yield from (node for node in found if isinstance(node, NodeOfGraph))


def create_pattern_support(
    patterns: Iterable[PatternLike], *, ignore_literals: bool = False
) -> OperatorSupport:
    """Return the support of the nodes of all matches of patterns; see `replace_pattern`.

    Args:
        patterns: functions of patterns, ONNX text, graphs, models or patterns.
        ignore_literals: attributes and numbers match anything.
    """
    return PatternSupport(patterns, ignore_literals=ignore_literals)


class BackendSupport(OperatorSupport):
    """The nodes that the table of a backend takes, without some operators.

    A call of a local function that the table does not list is taken if all nodes of the function
    are, or if the function is a composite of the target: `npu.conv_relu` of `npu`.

    Args:
        backend: the target.
        denied: operators that are not taken: `Conv`, `com.microsoft::Gelu`.

    Raises:
        UsageError: there is no such operator.
    """

    def __init__(self, backend: Backend, denied: Iterable[str] = ()) -> None:
        super().__init__()
        if isinstance(denied, str):
            raise UsageError(f"denied is a list of operators, not the string {denied!r}")
        self.backend = backend
        self.denied = frozenset(denied)
        for name in self.denied:
            check_operator(name, backend.operators)

    def is_node_supported(self, graph: Graph, node: Node) -> bool:
        return self._takes(node)

    def _takes(self, node: Node) -> bool:
        if node.operator in self.denied or not self.backend.takes(node):
            return False
        if self.backend.rules(node.op_type, node.domain):
            return True
        if node.domain == COMPOSITES and node.op_type.startswith(f"{self.backend.name}."):
            return True
        function = node.owner.model.function(*node.callee)
        return function is None or all(map(self._takes, function.walk()))


def is_taken_whole(support: OperatorSupport, graph: Graph, node: Node) -> bool:
    """Return whether a support takes a node, and all nodes of its bodies at any depth."""
    if not support.is_node_supported(graph, node):
        return False
    return all(
        is_taken_whole(support, body, inner) or inner.is_op("Constant")
        for body in node.bodies
        for inner in body.nodes
    )
