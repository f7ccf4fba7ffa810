"""CapabilityBasedPartitioner: from what a target takes to partitions, and from these to functions.

The names and rules are those of ExecuTorch and torch.fx.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tiered.extensions.partition.boundary import Boundary, boundary_of, graph_of
from tiered.extensions.partition.contraction import Group, grouped, has_cycle
from tiered.extensions.partition.supports import (
    OperatorSupport,
    PatternSupport,
    any_chain,
    is_taken_whole,
)
from tiered.extensions.partition.versions import DOMAIN, FunctionIds, outlined
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.core.marks import DEVICE, STAGE
from tiered.graph.queries.op_traits import VIEWS
from tiered.rewriter.subgraphs.pattern_text import PatternLike
from tiered.support.errors import ModelError, UsageError
from tiered.support.loading import paused_collector

NON_COMPUTE: Final = frozenset(VIEWS)
"""Operators that move no data: a partition of these alone is not worth a call."""

_BETWEEN: Final = "\0"

Supports = OperatorSupport | Mapping[str, OperatorSupport]


@dataclass(frozen=True, eq=False)
class Partition:
    """Nodes of one graph that a target takes together.

    Attributes:
        id: its number, in an order without back edges.
        nodes: its nodes, producers first.
        target: the name of the target, "" if there is only one.
    """

    id: int
    nodes: tuple[Node, ...]
    target: str = ""

    def __len__(self) -> int:
        return len(self.nodes)

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    @property
    def boundary(self) -> Boundary:
        """The values that it reads from outside, and those that are used outside."""
        return boundary_of(self.nodes)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that it reads from outside, weights included."""
        return self.boundary.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that are used outside."""
        return self.boundary.outputs


class CapabilityBasedPartitioner:
    """Groups the nodes that a target takes into as few partitions as possible, without cycles.

    Contracted to single nodes, the partitions leave the graph acyclic, and no two can become one.
    A node with bodies is taken with its bodies or not at all. A Constant belongs to a partition if
    only this reads it. One graph is partitioned: for a model, its main graph.

    Args:
        graph: a graph, or a model.
        operator_support: which nodes the target takes; for several targets a mapping by name: the
            first one that takes a node gets it.
        allows_single_node_partition: keep partitions of a single compute node.
        non_compute_ops: more operators that do not count as compute nodes, beside `NON_COMPUTE`.
        allowed_single_node_partition_ops: operators that may be alone.
        skip_horizontal_fusion: each partition is connected; otherwise independent nodes may be in
            one, and the number of partitions is the least possible.
    """

    def __init__(
        self,
        graph: Graph | Model,
        operator_support: Supports,
        allows_single_node_partition: bool = False,
        non_compute_ops: Collection[str] | None = None,
        allowed_single_node_partition_ops: Collection[str] | None = None,
        *,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        if not isinstance(graph, Graph | Model):
            raise UsageError(
                "a partitioner takes a tiered Graph or Model, not an object of type "
                f"{type(graph).__name__}: Model.from_proto makes one of a ModelProto"
            )
        self.graph = graph.main if isinstance(graph, Model) else graph
        single = isinstance(operator_support, OperatorSupport)
        self.supports: dict[str, OperatorSupport] = (
            {"": operator_support} if single else dict(operator_support)  # type: ignore[dict-item, arg-type]  # by `single`
        )
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = NON_COMPUTE | set(non_compute_ops or ())
        self.allowed_alone = frozenset(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Return the partitions, in an order without back edges; the graph is not changed."""
        with paused_collector():
            return self._propose()

    def _propose(self) -> list[Partition]:
        targets: dict[Node, str] = {}
        for node in self.graph.topological_order():
            if node.is_op("Constant"):
                continue
            for name, support in self.supports.items():
                if is_taken_whole(support, self.graph, node):
                    targets[node] = with_place(name, node)
                    break
        groups = grouped(self.graph, targets, connected=self.skip_horizontal_fusion)
        kept = [group for group in groups if self._is_kept(group.nodes)]
        return [Partition(at, *_whole(group)) for at, group in enumerate(kept)]

    def _is_kept(self, nodes: Sequence[Node]) -> bool:
        compute = [node for node in nodes if node.operator not in self.non_compute_ops]
        if self.allows_single_node_partition or len(compute) > 1:
            return bool(compute)
        return any(node.operator in self.allowed_alone for node in nodes)

    def remove_bookend_non_compute_ops(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Return the partitions without non-compute nodes at their inputs and outputs."""
        found: list[Partition] = []
        for partition in partitions:
            nodes = self._without_ends(partition.nodes, forward=True)
            nodes = self._without_ends(nodes, forward=False)
            if nodes:
                found.append(Partition(partition.id, nodes, partition.target))
        return found

    def _without_ends(self, nodes: Sequence[Node], *, forward: bool) -> tuple[Node, ...]:
        left = dict.fromkeys(nodes)
        for node in nodes if forward else reversed(nodes):
            near = node.predecessors if forward else node.successors
            is_free = node.operator in self.non_compute_ops or node.is_op("Constant")
            if is_free and not any(other in left for other in near):
                del left[node]
        return tuple(left)

    def fuse_partitions(
        self, partitions: Iterable[Partition], prefix: str = "fused_", domain: str = DOMAIN
    ) -> Graph:
        """Replace each partition by a call of a new local function, and return the graph.

        Raises:
            ModelError: the partitions overlap, or form a cycle, or the IR version has no functions.
        """
        fuse_partitions(partitions, prefix=prefix, domain=domain)
        return self.graph

    def partition_and_fuse(self, prefix: str = "fused_") -> Graph:
        """Propose the partitions, replace each by a call, and return the graph."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _whole(group: Group) -> tuple[tuple[Node, ...], str]:
    """Return the nodes of a group with the Constants that only they read, and its target."""
    return with_constants(group.nodes), without_place(group.target)


def with_place(target: str, node: Node) -> str:
    """Return a target with the device and stage of a node: a partition never crosses marks."""
    if not node.proto.metadata_props:
        return target
    metadata = node.metadata
    place = [metadata.get(DEVICE, ""), metadata.get(STAGE, "")]
    return _BETWEEN.join([target, *place]) if any(place) else target


def without_place(target: str) -> str:
    """Return the target alone."""
    return target.partition(_BETWEEN)[0]


def with_constants(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes, and the Constants that only they read, producers first."""
    inside = set(nodes)
    found: dict[Node, None] = {}
    for node in nodes:
        for source in node.predecessors:
            if source.is_op("Constant") and _is_inner(source, inside):
                found[source] = None
        found[node] = None
    return tuple(found)


def _is_inner(node: Node, inside: Collection[Node]) -> bool:
    value = node.output
    is_named = value.pins or value.output_of
    return not is_named and all(reader in inside for reader in value.readers)


def propose_partitions(
    graph: Graph | Model,
    operator_support: Supports,
    *,
    allows_single_node_partition: bool = False,
    skip_horizontal_fusion: bool = False,
) -> list[Partition]:
    """Return the partitions of a graph; see `CapabilityBasedPartitioner`."""
    return CapabilityBasedPartitioner(
        graph,
        operator_support,
        allows_single_node_partition,
        skip_horizontal_fusion=skip_horizontal_fusion,
    ).propose_partitions()


def fuse_partitions(
    partitions: Iterable[Partition | Sequence[Node]],
    *,
    prefix: str = "fused_",
    domain: str = DOMAIN,
) -> list[Node]:
    """Replace each partition by a call of a new local function, and return the calls.

    Partitions that no other node and no output needs stay as they are.

    Raises:
        ModelError: the partitions overlap, or form a cycle, or the IR version has no functions.
    """
    parts = checked(partitions)
    if not parts:
        return []
    graph = parts[0][0].owner
    ids = FunctionIds(graph.model)
    with paused_collector(), graph.model.transaction():
        return [
            outlined(graph, nodes, f"{prefix}{at}", ids, domain=domain)
            for at, nodes in enumerate(parts)
            if boundary_of(nodes).outputs
        ]


def checked(partitions: Iterable[Partition | Sequence[Node]]) -> list[tuple[Node, ...]]:
    """Return the nodes of each partition, producers first.

    Raises:
        ModelError: two share a node, they are of several graphs, or they form a cycle.
    """
    parts = [tuple(p.nodes if isinstance(p, Partition) else p) for p in partitions]
    if not parts:
        return []
    graph = graph_of(node for part in parts for node in part)
    for part in parts:
        graph_of(part)
    place = {node: at for at, node in enumerate(graph.topological_order())}
    taken: set[Node] = set()
    for part in parts:
        for node in part:
            if node in taken:
                raise ModelError(f"node {node.label!r} is in two partitions; expected one of each")
            taken.add(node)
    if has_cycle(graph, parts):
        raise ModelError(
            f"the {len(parts)} partitions of {graph!r} form a cycle: a path leaves one and returns "
            "to it; propose_partitions makes partitions without cycles"
        )
    return [tuple(sorted(part, key=place.__getitem__)) for part in parts]


def generate_pattern_op_partitions(
    graph: Graph | Model,
    patterns: Sequence[PatternLike] | None = None,
    op_support: OperatorSupport | None = None,
    ignore_literals: bool = False,
) -> list[Partition]:
    """Return the partitions of all nodes that match a pattern or that a support takes.

    Partitions of a single node are kept.

    Raises:
        UsageError: neither patterns nor a support are given.
    """
    supports = list(_supports(patterns, op_support, ignore_literals))
    if not supports:
        raise UsageError("generate_pattern_op_partitions needs patterns, or an op_support, or both")
    partitioner = CapabilityBasedPartitioner(
        graph, any_chain(*supports), allows_single_node_partition=True
    )
    return partitioner.propose_partitions()


def _supports(
    patterns: Sequence[PatternLike] | None,
    op_support: OperatorSupport | None,
    ignore_literals: bool,
) -> Iterator[OperatorSupport]:
    if patterns:
        yield PatternSupport(patterns, ignore_literals=ignore_literals)
    if op_support is not None:
        yield op_support
