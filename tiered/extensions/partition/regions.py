"""Regions by metadata: mark the nodes of targets, merge them to regions, cut the regions out.

The three steps of TVM: `annotate_target`, `merge_compiler_regions`, `partition_graph`. A mark is
metadata of a node: `tiered.compiler` names its target, `tiered.region` its region. No node is added
at the borders, so that marks change nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Literal, overload

from tiered.extensions.partition.composite import is_composite
from tiered.extensions.partition.contraction import grouped, order_of_groups
from tiered.extensions.partition.outside import graphs_outside_of_regions
from tiered.extensions.partition.partition_plan import Plan
from tiered.extensions.partition.partitioner import (
    Partition,
    with_constants,
    with_place,
    without_place,
)
from tiered.extensions.partition.separate import as_models as separate
from tiered.extensions.partition.supports import OperatorSupport, is_taken_whole
from tiered.extensions.partition.versions import FunctionIds, check_metadata, outlined
from tiered.graph import Function, Graph, Model, Node, Value
from tiered.graph.core.marks import COMPILER, REGION
from tiered.support.errors import ModelError


def mark_targets(model: Model, supports: Mapping[str, OperatorSupport]) -> int:
    """Mark each node with the first target that takes it; return how many are newly marked.

    A node with bodies, and a call of a local function, is marked as a whole if one target takes all
    nodes inside; otherwise the nodes inside are marked, but those of a composite. Marks that are
    there already stay. Constants are data and not marked, and what is computed of constants alone
    only where a node of its target reads it.

    Raises:
        ModelError: the IR version has no metadata of nodes.
    """
    check_metadata(model)
    count = 0
    for graph in graphs_outside_of_regions(model):
        if is_composite(graph.root):
            continue
        for node, target in _targets(graph, supports).items():
            with graph.rewrite("a node  =>  the node, marked for its target", node):
                graph.set_metadata(node, {**node.metadata, COMPILER: target})
            count += COMPILER in node.metadata
    return count


def _targets(graph: Graph, supports: Mapping[str, OperatorSupport]) -> dict[Node, str]:
    """Return the nodes of a graph that get a mark, in topological order, with their targets."""
    found: dict[Node, str] = {}
    fixed = set[Node]()
    order = graph.topological_order()
    for node in order:
        if node.is_op("Constant") or COMPILER in node.metadata or _is_cut_out(node):
            continue
        target = next((t for t, s in supports.items() if is_taken_whole(s, graph, node)), None)
        if target is not None:
            found[node] = target
        if node.inputs and all(_is_fixed(value, fixed) for value in node.inputs):
            fixed.add(node)
    for node in reversed(order):
        if node in fixed and node in found:
            near = (found.get(each, each.metadata.get(COMPILER)) for each in node.successors)
            if found[node] not in near:
                del found[node]
    return found


def _is_fixed(value: Value | None, fixed: Container[Node]) -> bool:
    return value is None or value.is_constant or value.producer in fixed


def merge_regions(model: Model) -> int:
    """Merge adjacent marked nodes of one target to regions, and return their number.

    No path leaves a region and returns to it. A region is connected and of one graph, and no two
    adjacent ones of one target could be one. The Constants that only a region reads belong to it.
    """
    names = _RegionNames(model)
    for graph in graphs_outside_of_regions(model):
        for group in grouped(graph, _marked(graph), connected=True):
            target = without_place(group.target)
            marks = {COMPILER: target, REGION: names.of(target, group.nodes)}
            whole = with_constants(group.nodes)
            nodes = [node for node in whole if not marks.items() <= node.metadata.items()]
            if not nodes:
                continue
            with graph.rewrite("adjacent nodes of a target  =>  a region", group.nodes[0]):
                for node in nodes:
                    graph.set_metadata(node, {**node.metadata, **marks})
    return len(names.given)


class _RegionNames:
    """Names of regions: a region keeps its name, and no function has the name of a new one."""

    def __init__(self, model: Model) -> None:
        self.given: set[str] = set()
        nodes = (node for graph in model.graphs() for node in graph.nodes)
        known = (node.metadata.get(REGION) for node in nodes if node.proto.metadata_props)
        self._known = {name for name in known if name}
        self._known.update(function.function_name for function in model.functions)
        self._next: dict[str, int] = {}

    def of(self, target: str, nodes: tuple[Node, ...]) -> str:
        """Return the name of a region of these nodes."""
        own = {node.metadata.get(REGION) for node in nodes}
        kept = own.pop() if len(own) == 1 else None
        name = kept if kept and kept not in self.given else self._fresh(target)
        self.given.add(name)
        return name

    def _fresh(self, target: str) -> str:
        number = self._next.get(target, 0)
        while (name := f"{target}_{number}") in self._known:
            number += 1
        self._next[target] = number + 1
        self._known.add(name)
        return name


def marked_partitions(graph: Graph) -> list[Partition]:
    """Return the regions of a graph as their marks say; a node without a region is one itself.

    Raises:
        ModelError: the regions form a cycle.
    """
    found: dict[tuple[str, str], list[Node]] = {}
    for node in graph.topological_order():
        metadata = node.metadata
        target, region = metadata.get(COMPILER), metadata.get(REGION)
        if not target or _is_cut_out(node) or (node.is_op("Constant") and not region):
            continue
        found.setdefault((target, region or f"{node.id}"), []).append(node)
    parts = list(found.values())
    order = order_of_groups(graph, parts)
    if order is None:
        raise ModelError(
            f"the marked regions of {graph!r} form a cycle: a path leaves a region and returns to "
            "it; remove the tiered.region marks and run merge_compiler_regions again"
        )
    keys = list(found)
    return [Partition(place, tuple(parts[at]), keys[at][0]) for place, at in enumerate(order)]


@overload
def partition_graph(model: Model, *, as_models: Literal[True]) -> Plan: ...
@overload
def partition_graph(model: Model, *, as_models: Literal[False] = False) -> Model: ...
def partition_graph(model: Model, *, as_models: bool = False) -> Model | Plan:
    """Cut out the marked regions.

    Args:
        model: the model; edited in place, unless `as_models`.
        as_models: return the plan of separate models of the main graph. Otherwise each region
            becomes a call of a local function of the domain `tiered.<target>`, which every runtime
            runs, and which no pass edits.

    Raises:
        ModelError: the regions form a cycle, or the IR version has no functions.
    """
    if as_models:
        return separate(model, marked_partitions(model.main))
    cut_out_regions(model)
    return model


def cut_out_regions(model: Model) -> list[Node]:
    """Replace each marked region by a call of a new local function, and return the calls."""
    calls: list[Node] = []
    ids = FunctionIds(model)
    for graph in graphs_outside_of_regions(model):
        for part in marked_partitions(graph):
            if not part.outputs:
                continue
            region = part.nodes[0].metadata.get(REGION) or f"{part.target}_{part.id}"
            with graph.rewrite("a region  =>  a call of its function", part.nodes[0]):
                call = outlined(
                    graph,
                    part.nodes,
                    region,
                    ids,
                    domain=f"tiered.{part.target}",
                    metadata={COMPILER: part.target},
                )
            calls += [call] if call.graph is not None else []
    return calls


def _marked(graph: Graph) -> dict[Node, str]:
    marked: dict[Node, str] = {}
    for node in graph.nodes:
        target = node.metadata.get(COMPILER) if node.proto.metadata_props else None
        if target and not node.is_op("Constant") and not _is_cut_out(node):
            marked[node] = with_place(target, node)
    return marked


def _is_cut_out(node: Node) -> bool:
    """Return whether a node is the call of a function that belongs to a target."""
    function: Function | None = node.owner.model.function(*node.callee)
    if function is None:
        return False
    return any(entry.key == COMPILER for entry in function.skeleton.metadata_props)
