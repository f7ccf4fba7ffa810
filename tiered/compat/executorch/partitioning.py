"""Supports of operators, partitions and the origins of nodes by the names of torch.fx."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tiered.compat.executorch.fx_graph import FxGraphModule
from tiered.compat.executorch.fx_node import FxNode
from tiered.compat.executorch.matching import AnyGraph, view_of
from tiered.extensions.partition import (
    CapabilityBasedPartitioner as _Partitioner,
    OperatorSupport,
    Partition,
    SourcePartition,
    any_chain as _any_chain,
    chain as _chain,
    create_op_support as _create_op_support,
    generate_pattern_op_partitions as _pattern_partitions,
    get_source_partitions as _source_partitions,
)
from tiered.extensions.partition.partitioner import Supports
from tiered.extensions.partition.source_partitions import Source
from tiered.extensions.partition.supports import FunctionSupport
from tiered.graph import Graph, Model, Node
from tiered.rewriter.subgraphs.pattern_text import PatternLike
from tiered.support.errors import UsageError


def get_source_partitions(
    graph: AnyGraph,
    wanted_sources: Iterable[Source],
    filter_fn: Callable[[Node], bool] | None = None,
) -> dict[Source, list[SourcePartition]]:
    """`tiered.extensions.partition.get_source_partitions`, with the filter of torch.fx.

    Args:
        graph: a graph, or a model for its main graph.
        wanted_sources: the sources, which are the keys of the result.
        filter_fn: keeps the partitions for all of whose nodes it returns True.
    """
    found = _source_partitions(view_of(graph), wanted_sources)
    if filter_fn is None:
        return found
    kept = {
        source: [each for each in partitions if all(map(filter_fn, each.nodes))]
        for source, partitions in found.items()
    }
    return {source: partitions for source, partitions in kept.items() if partitions}


class OperatorSupportBase(OperatorSupport):
    """Decides whether a target takes a node; a partitioner calls it with nodes of torch.fx.

    Such a node has the attributes of a `tiered.Node` too.
    """

    def is_node_supported(self, graph: Any, node: Any) -> bool:
        """Return whether the target takes a node; by the table, unless a subclass says."""
        return super().is_node_supported(graph, node)


class _NodeSupport(FunctionSupport, OperatorSupportBase):
    """The support of the nodes of torch.fx for which a function returns True."""


def create_op_support(is_node_supported: Callable[[Any, Any], bool]) -> OperatorSupport:
    """Return the support of the nodes of torch.fx for which a function of two arguments is true."""
    return _NodeSupport(is_node_supported)


def _takes_fx(support: OperatorSupport) -> OperatorSupport:
    """Return a support of nodes of torch.fx as one of tiered's nodes."""
    if not isinstance(support, OperatorSupportBase):
        return support

    def takes(graph: Graph, node: Node) -> bool:
        model = graph.model
        assert isinstance(model, Model)
        given = FxGraphModule.of(model).graph.node_for(node)
        return bool(support.is_node_supported(graph, given))

    return _create_op_support(takes)


def _of_tiered(supports: Supports) -> Supports:
    """Return supports, one for each target or one, as those of tiered."""
    if isinstance(supports, Mapping):
        return {target: _takes_fx(each) for target, each in supports.items()}
    return _takes_fx(supports)


def chain(*supports: OperatorSupport) -> OperatorSupport:
    """Return the support of the nodes that all supports take; of all nodes if there is none."""
    return _chain(*map(_takes_fx, supports))


def any_chain(*supports: OperatorSupport) -> OperatorSupport:
    """Return the support of the nodes that one of the supports takes; of none if there is none."""
    return _any_chain(*map(_takes_fx, supports))


class FxPartitioner(_Partitioner):
    """`tiered.extensions.partition.CapabilityBasedPartitioner` by the names of torch.fx.

    Args:
        graph_module: a graph or a model; a ModelProto stays as it is, and `graph` is a view of it.
        operator_support: which nodes the target takes.
        options: as there.
    """

    def __init__(
        self,
        graph_module: AnyGraph,
        operator_support: Supports,
        *options: Any,
        **named: Any,
    ) -> None:
        super().__init__(view_of(graph_module), _of_tiered(operator_support), *options, **named)

    def fuse_partition(self, partitions: Iterable[Partition]) -> Any:
        """Replace each partition by a call of a new local function, and return the graph."""
        return self.fuse_partitions(partitions)


def generate_partitions_from_list_of_nodes(
    graph_module: AnyGraph,
    pattern_list: Iterable[Iterable[Node | FxNode]] | None = None,
    op_support: Supports | None = None,
) -> list[Partition]:
    """Return the partitions of nodes that are listed, or that a support takes.

    Args:
        graph_module: a graph or a model, which has the nodes.
        pattern_list: lists of nodes; a partition may have those of several.
        op_support: which other nodes the target takes.

    Raises:
        UsageError: neither is given, the support is one for each target, or what is listed is no
            node of the graph.
    """
    if pattern_list is None and op_support is None:
        raise UsageError(
            "generate_partitions_from_list_of_nodes needs a pattern_list, or an op_support, or both"
        )
    view = view_of(graph_module)
    graph = view.main if isinstance(view, Model) else view
    listed = {_listed(graph, node) for nodes in pattern_list or () for node in nodes}
    supports = [_create_op_support(lambda graph, node: node in listed)]
    if op_support is not None:
        if isinstance(op_support, Mapping):
            raise UsageError("op_support is one support, not one for each target")
        supports.append(_takes_fx(op_support))
    partitioner = _Partitioner(graph, _any_chain(*supports), allows_single_node_partition=True)
    return partitioner.propose_partitions()


def _listed(graph: Graph, node: object) -> Node:
    """Return a node of a list, or raise if the graph does not have it."""
    found = node.subject if isinstance(node, FxNode) else node
    if not isinstance(found, Node) or found.graph is not graph:
        raise UsageError(f"{node!r} is no operator of graph {graph.name!r}")
    return found


def generate_pattern_op_partitions(
    graph_module: AnyGraph,
    patterns: Sequence[PatternLike] | None = None,
    op_support: OperatorSupport | None = None,
    ignore_literals: bool = False,
) -> list[Partition]:
    """Return the partitions of all nodes that match a pattern or that a support takes.

    Raises:
        UsageError: neither patterns nor a support are given.
    """
    taken = None if op_support is None else _takes_fx(op_support)
    return _pattern_partitions(view_of(graph_module), patterns, taken, ignore_literals)
