"""The invariants of a view, checked by computing every index again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.graph.core.topological_order import producers, sort_nodes
from tiered.graph.core.types import (
    TensorType,
    ValueType,
    contradict,
    is_compatible,
    says_no_more,
    tensor_type,
)
from tiered.graph.core.use_lists import build_dag
from tiered.graph.core.value import SLOT_BITS, NotInferred, Value
from tiered.graph.edits.value_edits import declared_input_type, without_invented_names
from tiered.graph.shape_inference.onnx_inference import onnx_types

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node


def violations(model: ModelState) -> Iterator[str]:
    """Yield a sentence for each invariant of the view that does not hold."""
    graphs = list(model.graphs())
    users, outputs, captures = _count_uses(graphs)
    names: Counter[str] = Counter()
    node_names: Counter[str] = Counter()
    for graph in graphs:
        yield from _check_nodes(graph)
        yield from _check_index(graph)
        yield from _check_dag(graph)
        for value in _values(graph):
            names[value.name] += 1
            yield from _check_value(graph, value)
            yield from _check_stated(value)
            if value._users != users.get(value, {}):
                yield f"users of {value.name!r} differ from the inputs that read it"
            if Counter(value.output_of) != outputs.get(value, Counter()):
                yield f"output_of of {value.name!r} does not match the outputs of the graphs"
            if (value._captures or {}) != captures.get(value, {}):
                yield f"captures of {value.name!r} differ from the bodies that read it"
        node_names.update(node.proto.name for node in graph.nodes if node.proto.name)
    stale = Counter(
        info.name
        for graph in graphs
        for value, info in graph.declarations
        if value is None and info.name
    )
    stale.update(name for graph in graphs for name in graph.file_names.values())
    if model.names._taken != dict(names + stale):
        yield "the names that are taken differ from those of the values"
    if model.node_names._taken != dict(node_names):
        yield "the node names that are taken differ from those of the nodes"


def type_violations(model: ModelState) -> Iterator[str]:
    """Yield a sentence for each type that contradicts the types of the operands.

    Edits that keep the meaning of a model keep its types. Declared types are not checked, because
    they may have been wrong in the file.
    """
    for graph in model.graphs():
        for value in graph.initializers:
            tensor, kind = value.tensor, value.type
            if tensor is not None and kind != tensor_type(tensor.dtype, tensor.shape):
                yield f"initializer {value.name!r} is {tensor.dtype} {tensor.shape}, not {kind}"
        for node in graph.nodes:
            is_ruled = node.domain or node.op_type == "Constant"
            found = model.types.outputs_of(node) if is_ruled else onnx_types(node)
            for output, now in zip(node._outputs, found, strict=False):
                if output is None or output.declared is not None:
                    continue
                if contradict(output._type, now):
                    yield f"output {output.name!r} of {node.label!r} is {now}, not {output._type}"


def _check_stated(value: Value) -> Iterator[str]:
    """Yield a sentence if the type of an input or constant is more exact than in the file."""
    kind = value._type
    if isinstance(kind, NotInferred):
        return
    if value._tensor is not None and value.input_of is None:
        known: ValueType | None = tensor_type(value._tensor.dtype, value._tensor.shape)
        if not says_no_more(kind, known):
            yield f"initializer {value.name!r} is {known} by its contents, {kind} in the view"
    elif value.input_of is not None and not value.input_of.is_function:
        known = declared_input_type(value)
        if isinstance(known, TensorType) and known.shape is not None:
            # A declared name may look like one that onnx invented, and get a size.
            resolve = value.owner.model.dims.resolve
            known = tensor_type(known.dtype, tuple([resolve(dim) for dim in known.shape]))
        is_main = value.input_of.is_main
        kind = without_invented_names(value, kind)
        if not (says_no_more(kind, known) if is_main else is_compatible(kind, known)):
            yield f"graph input {value.name!r} is declared {known}, but is {kind} in the view"


def _values(graph: Graph) -> Iterator[Value]:
    return iter(sorted(graph._values.values(), key=lambda value: value.id))


def _count_uses(
    graphs: list[Graph],
) -> tuple[dict[Value, dict[int, Node]], dict[Value, Counter[Graph]], dict[Value, dict[Node, int]]]:
    users: dict[Value, dict[int, Node]] = {}
    outputs: dict[Value, Counter[Graph]] = {}
    captures: dict[Value, dict[Node, int]] = {}

    def capture(value: Value, graph: Graph) -> None:
        while graph is not value.graph:
            assert graph.parent_node is not None, f"{value.name!r} is not visible where it is read"
            owner = graph.parent_node
            graph = owner.owner
            if graph is value.graph:
                found = captures.setdefault(value, {})
                found[owner] = found.get(owner, 0) + 1

    for graph in graphs:
        for node in graph.nodes:
            for index, value in enumerate(node._inputs):
                if value is not None:
                    users.setdefault(value, {})[node.id << SLOT_BITS | index] = node
                    capture(value, graph)
        for value in graph._outputs:
            outputs.setdefault(value, Counter())[graph] += 1
            capture(value, graph)
    return users, outputs, captures


def _check_nodes(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        proto = node.proto
        if node.graph is not graph:
            yield f"node {node.label!r} is in a graph that is not its `graph`"
        read = ["" if value is None else value.name for value in node._inputs]
        written = ["" if value is None else value.name for value in node._outputs]
        if list(proto.input) != read or list(proto.output) != written:
            yield f"node {node.label!r} differs from its NodeProto"
        for value in node._inputs:
            if value is not None and not graph.sees(value):
                yield f"node {node.label!r} reads {value.name!r}, which it cannot see"
            elif value is not None and graph.value(value.name) is not value:
                yield f"node {node.label!r} reads {value.name!r}, which names another value here"
        for index, value in enumerate(node._outputs):
            if value is not None and (value.producer is not node or value.index != index):
                yield f"the producer of {value.name!r} is not {node.label!r}"


def _check_index(graph: Graph) -> Iterator[str]:
    expected: dict[tuple[str, str], dict[int, Node]] = {}
    for node in graph.nodes:
        expected.setdefault((node.domain, node.op_type), {})[node.id] = node
    if {key: found for key, found in graph._by_op.items() if found} != expected:
        yield f"the operator index of graph {graph.name!r} is wrong"
    if graph._body_nodes != {node.id: node for node in graph.nodes if node.bodies}:
        yield f"the index of nodes with bodies of graph {graph.name!r} is wrong"
    if graph._order is not None:
        place = {node: at for at, node in enumerate(graph._order)}
        if set(place) != set(graph.nodes) or any(
            place[producer] > place[node]
            for node in graph._order
            for producer in producers(graph, node)
        ):
            yield f"the topological order of graph {graph.name!r} is out of date"
    sort_nodes(graph)


def _check_dag(graph: Graph) -> Iterator[str]:
    if graph._dag is None:
        return
    fresh = build_dag(graph)
    if set(graph._dag) != set(fresh):
        yield f"the networkx view of graph {graph.name!r} has other nodes"
        return
    edges = {(u, v): data["slots"] for u, v, data in graph._dag.edges(data=True)}
    expected = {(u, v): data["slots"] for u, v, data in fresh.edges(data=True)}
    if edges != expected:
        yield f"the networkx view of graph {graph.name!r} has other edges"


def _check_value(graph: Graph, value: Value) -> Iterator[str]:
    if value.graph is not graph or graph._values.get(value.name) is not value:
        yield f"value {value.name!r} is not registered in graph {graph.name!r}"
    if (value._tensor is not None) != (value.id in graph._constants):
        yield f"{value.name!r} is an initializer for itself or for its graph only"
    if (value.input_of is graph) != (value in graph._inputs):
        yield f"{value.name!r} is an input for itself or for its graph only"
    if value.producer is None and value._tensor is None and value.input_of is None:
        yield f"{value.name!r} has no producer"
