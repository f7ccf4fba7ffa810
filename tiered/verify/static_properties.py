"""Properties of a model that need no run: acyclic, connected, isomorphic to another model.

Each takes a `Model` or a `Graph`, so it can be used in `Sequential(checks=[...])`, `precondition=`
and `postcondition=`. It returns True, or raises with what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import networkx as nx
import onnx

from tiered.graph import Graph, Model
from tiered.support.amounts import counted
from tiered.support.errors import VerificationError

if TYPE_CHECKING:
    from tiered.graph import Node, Value

Subject = Model | Graph


def acyclic(subject: Subject, ctx: object = None) -> bool:
    """Hold if no node needs its own output, in any graph.

    Raises:
        VerificationError: there is a cycle; the message names its nodes.
    """
    for graph in _graphs(subject):
        if not nx.is_directed_acyclic_graph(graph.dag):
            cycle = [edge[0].label for edge in nx.find_cycle(graph.dag)]
            raise VerificationError(f"graph {graph.name!r} has a cycle: {' -> '.join(cycle)}")
    return True


def connected(subject: Subject, ctx: object = None) -> bool:
    """Hold if every node is linked with every other one, through nodes or inputs.

    Constants link nothing: two halves that share a weight do not work together.

    Raises:
        VerificationError: a part is not connected; the message names one of its nodes.
    """
    for graph in _graphs(subject):
        links: nx.Graph[Hashable] = nx.Graph()
        links.add_nodes_from(node for node in graph.nodes if node.op_type != "Constant")
        links.add_edges_from(edge for edge in graph.dag.edges if edge[0].op_type != "Constant")
        for value in graph.inputs:
            if not value.is_initializer:
                links.add_edges_from((value, reader) for reader in value.readers)
        parts = [part for part in nx.connected_components(links) if any(map(_is_node, part))]
        if len(parts) > 1:
            least = min(parts, key=len)
            first = min((item for item in least if _is_node(item)), key=lambda node: node.id)
            raise VerificationError(
                f"graph {graph.name!r} is in {len(parts)} parts: {first.label!r} is not linked "
                "with the rest"
            )
    return True


def isomorphic_to(
    other: Subject | onnx.ModelProto,
) -> Callable[..., bool]:
    """Return a check that a model equals this one, up to names and the order of nodes.

    Operators, attributes, bodies, links by slot, small constants, opsets, and the names of inputs
    and outputs of the main graph must be the same.

    Args:
        other: the expected model.
    """
    wanted = Model.from_proto(other) if isinstance(other, onnx.ModelProto) else other

    def isomorphic(subject: Subject, ctx: object = None) -> bool:
        here, there = _roots(subject), _roots(wanted)
        if isinstance(subject, Graph) or isinstance(wanted, Graph):
            here, there = here[:1], there[:1]
        if len(here) != len(there):
            raise VerificationError(f"{len(there) - 1} functions expected, not {len(here) - 1}")
        for one, two in zip(here, there, strict=True):
            _check_alike(one, two)
        return True

    return isomorphic


def _roots(subject: Subject) -> list[Graph]:
    return [subject.main, *subject.functions] if isinstance(subject, Model) else [subject]


def _graphs(subject: Subject) -> list[Graph]:
    if isinstance(subject, Model):
        return list(subject.graphs())
    return [subject]


def _is_node(item: Any) -> bool:
    return hasattr(item, "op_type")


def _check_alike(here: Graph, there: Graph) -> None:
    for side in ("inputs", "outputs"):
        names = [[value.name for value in getattr(graph, side)] for graph in (here, there)]
        if names[0] != names[1]:
            raise VerificationError(f"{side} {names[1]} expected, not {names[0]}")
    if not _are_alike(here, there):
        raise VerificationError(
            f"graph {here.name!r} ({counted(len(here), 'node')}) is not isomorphic to "
            f"{there.name!r} ({counted(len(there), 'node')})"
        )


def _are_alike(here: Graph, there: Graph) -> bool:
    labelled = _labelled(here), _labelled(there)
    return bool(nx.is_isomorphic(*labelled, node_match=_same, edge_match=_same))


def _same(one: dict[str, Any], two: dict[str, Any]) -> bool:
    if one["what"] != two["what"]:
        return False
    bodies = zip(one.get("bodies", ()), two.get("bodies", ()), strict=True)
    return all(_are_alike(here, there) for here, there in bodies)


def _labelled(graph: Graph) -> nx.DiGraph[Hashable]:
    """Return the graph of nodes and borders with labels; edges have the slots that they link."""
    labelled: nx.DiGraph[Hashable] = nx.DiGraph()
    for node in graph.nodes:
        labelled.add_node(node, what=_label(node), bodies=node.bodies)
    edges: dict[tuple[Hashable, Hashable], list[tuple[int, int]]] = {}
    for node in graph.nodes:
        for slot, value in enumerate(node.inputs):
            if value is None:
                continue
            source = _source(value, labelled, graph)
            edges.setdefault((source, node), []).append((value.index, slot))
        for value in node.captured:
            if value.default is None:
                source = _source(value, labelled, graph)
                edges.setdefault((source, node), []).append((value.index, -1))
    for place, value in enumerate(graph.outputs):
        name = value.name if graph.parent_node is None else ""
        labelled.add_node(("output", place), what=("output", place, name))
        link = (_source(value, labelled, graph), ("output", place))
        edges.setdefault(link, []).append((value.index, 0))
    for (source, target), slots in edges.items():
        labelled.add_edge(source, target, what=sorted(slots))
    return labelled


def _source(value: Value, labelled: nx.DiGraph[Hashable], graph: Graph) -> Hashable:
    """Return the source of a value, as a node of the labelled graph."""
    if value.producer in labelled:
        return value.producer
    tensor = value.default
    what: tuple[Any, ...]
    if tensor is None:
        # A body may capture it from the graph around.
        inputs = value.owner.inputs
        place = inputs.index(value) if value in inputs else None
        is_named = place is not None and value.owner.parent_node is None
        made_by = None if value.producer is None else (_label(value.producer), value.index)
        name = value.name if is_named else ""
        what = ("input", place, name, made_by, value.owner is graph)
    else:
        small = tensor.nbytes <= 1024 and not tensor.is_sparse
        numbers = tensor.numpy().tobytes() if small else b""
        what = ("constant", tensor.dtype, tensor.shape, numbers)
    labelled.add_node(value, what=what)
    return value


def _label(node: Node) -> tuple[Any, ...]:
    bodies = {body.attribute for body in node.bodies}
    settings = sorted(
        attribute.SerializeToString(deterministic=True)
        for name, attribute in node.attribute_protos().items()
        if name not in bodies
    )
    return node.domain, node.op_type, settings, len(node.outputs), len(node.bodies)
