"""Partitions  =>  separate models, a host model, and the plan that connects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import onnx

from tiered.extensions.partition.boundary import Boundary, boundary_of, is_used_outside
from tiered.extensions.partition.contraction import grouped, order_of_groups
from tiered.extensions.partition.partition_plan import Part, Plan
from tiered.extensions.partition.partitioner import Partition, checked
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.core.marks import METADATA_SINCE
from tiered.graph.core.types import write_type
from tiered.graph.io.export import export_function, export_node, without_invented, write_opsets
from tiered.support.errors import ModelError

HOST: Final = "host"
"""The target of the nodes that no other target takes."""


class _Piece(NamedTuple):
    """The nodes of one part, and its place in the plan."""

    name: str
    target: str
    nodes: tuple[Node, ...]
    edge: Boundary


def as_models(model: Model, partitions: Iterable[Partition]) -> Plan:
    """Return separate models for partitions of the main graph and for the nodes between them.

    Run one after the other, they compute the outputs of the model bit for bit. Each part has a copy
    of the constants that it reads; weights on disk stay there until the plan is saved. The host
    model is the main graph with a node of the domain `tiered.<target>` for each partition: a
    runtime needs an implementation of these. The model is not changed.

    Args:
        model: the model.
        partitions: partitions of its main graph.

    Raises:
        ModelError: a partition is not of the main graph, the partitions form a cycle, or the type
            of a value between two parts is unknown.
    """
    parts = list(partitions)
    for part in parts:
        if part.nodes[0].graph is not model.main:
            raise ModelError(
                f"partition {part.id} is of {part.nodes[0].owner!r}; expected nodes of the main "
                "graph: bodies and functions cannot become models of their own"
            )
    checked(parts)
    pieces = _pieces(model, parts)
    made = [
        Part(
            name=piece.name,
            target=piece.target,
            inputs=tuple(value.name for value in piece.edge.variables),
            outputs=tuple(value.name for value in piece.edge.outputs),
            nodes=len(piece.nodes),
            model=_model_of(model, piece),
        )
        for piece in pieces
    ]
    return Plan(
        inputs=tuple(v.name for v in model.main.inputs if not v.is_initializer),
        optional_inputs=tuple(v.name for v in model.main.inputs if v.is_initializer),
        outputs=tuple(value.name for value in model.main.outputs),
        parts=tuple(made),
        host=_host_of(model, pieces),
    )


def _pieces(model: Model, parts: Sequence[Partition]) -> list[_Piece]:
    """Return the parts of all nodes of the main graph, in an order without back edges."""
    graph = model.main
    targets = {node: HOST for node in graph.nodes if not node.is_op("Constant")}
    for at, part in enumerate(parts):
        targets.update((node, f"{at}") for node in part.nodes if node in targets)
    rest = {node: target for node, target in targets.items() if target == HOST}
    own = [[node for node in part.nodes if node in targets] for part in parts]
    hosts = [group.nodes for group in grouped(graph, rest, fixed=[one for one in own if one])]
    whole = {node: str(at) for at, part in enumerate(parts) for node in part.nodes}
    groups: list[tuple[str, tuple[Node, ...]]] = [
        *((part.target or "part", part.nodes) for part in parts),
        *((HOST, nodes) for nodes in hosts),
    ]
    shared = {node for node in graph.nodes_of("Constant") if node not in whole}
    order = order_of_groups(graph, [nodes for _, nodes in groups], shared)
    assert order is not None, "the partitions were checked for cycles"
    found = [_constants(graph, whole)]
    for at in order:
        target, nodes = groups[at]
        if any(is_used_outside(v, set(nodes)) for n in nodes for v in n.outputs if v is not None):
            found.append(_Piece("", target, nodes, boundary_of(nodes)))
    named = (piece for piece in found if piece is not None)
    return [
        piece._replace(name=f"{at:03d}_{re.sub('[^A-Za-z0-9_]', '_', piece.target)}")
        for at, piece in enumerate(named)
    ]


def _is_shared(node: Node, whole: dict[Node, str]) -> bool:
    return node.is_op("Constant") and node not in whole


def _constants(graph: Graph, whole: dict[Node, str]) -> _Piece | None:
    """Return the part of the graph outputs that no part computes: constants, and defaults."""
    values = [
        value
        for value in dict.fromkeys(graph.outputs)
        if value.is_initializer or (value.producer and _is_shared(value.producer, whole))
    ]
    if not values:
        return None
    return _Piece("", HOST, (), Boundary(tuple(values), tuple(values)))


def _model_of(model: Model, piece: _Piece) -> Model:
    """Return the model of one part, which shares its weights with the whole."""
    proto = _frame(model)
    graph = proto.graph
    graph.name = piece.name
    _write_constants(graph, piece.edge.inputs, model)
    main = model.main
    infos = dict(zip(main.inputs, main.input_infos, strict=True))
    for value in piece.edge.variables:
        graph.input.append(_info(value, infos.get(value)))
    graph.node.extend(export_node(node, is_bare=True) for node in piece.nodes)
    infos = dict(zip(main.outputs, main.output_infos, strict=True))
    for value in piece.edge.outputs:
        graph.output.append(_info(value, infos.get(value)))
    _write_declarations(graph, piece)
    _write_functions(proto, model, piece.nodes)
    return Model.from_proto(proto, folder=model.folder, source=f"part {piece.name}")


def _frame(model: Model) -> onnx.ModelProto:
    """Return the model without its graph, functions and training info."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model.skeleton)
    del proto.training_info[:]
    write_opsets(model, proto)
    return proto


def _write_constants(graph: onnx.GraphProto, values: Iterable[Value], model: Model) -> None:
    for value in values:
        tensor, producer = value.default, value.producer
        if tensor is not None and tensor.is_sparse:
            sparse = graph.sparse_initializer.add()
            assert isinstance(tensor.proto, onnx.SparseTensorProto)
            sparse.CopyFrom(tensor.proto)
            sparse.values.name = value.name
        elif tensor is not None:
            graph.initializer.append(tensor.to_proto(value.name))
            if model.ir_version < 4 and not value.is_overridable:
                graph.input.add(name=value.name, type=write_type(value.type))
        elif value.is_constant and producer is not None:
            graph.node.append(export_node(producer, is_bare=True))


def _info(value: Value, declared: onnx.ValueInfoProto | None) -> onnx.ValueInfoProto:
    """Return the declaration of a value between two parts.

    Raises:
        ModelError: its type is unknown.
    """
    if declared is not None:
        info = onnx.ValueInfoProto()
        info.CopyFrom(declared)
        info.name = value.name
        return info
    kind = without_invented(write_type(value.type))
    if not kind.WhichOneof("value"):
        label = value.producer.label if value.producer is not None else "no node"
        raise ModelError(
            f"{value.name!r}, which {label!r} computes, is between two parts and its type is "
            "unknown: a model must declare the types of its inputs; declare it as value_info, "
            "or make functions instead of models"
        )
    return onnx.ValueInfoProto(name=value.name, type=kind)


def _write_declarations(graph: onnx.GraphProto, piece: _Piece) -> None:
    """Write the value_info of the inner values, and the annotations of all values."""
    crossing = {*piece.edge.inputs, *piece.edge.outputs}
    here = crossing.union(v for node in piece.nodes for v in node.outputs if v is not None)
    for value in (v for node in piece.nodes for v in node.outputs):
        if value is not None and value not in crossing and value.declared is not None:
            graph.value_info.append(value.declared)
            graph.value_info[-1].name = value.name
    for values, annotation in piece.nodes[0].owner.annotations if piece.nodes else ():
        if all(value in here for value in values):
            graph.quantization_annotation.append(annotation)


def _write_functions(proto: onnx.ModelProto, model: Model, nodes: Iterable[Node]) -> None:
    """Write the local functions that nodes call, directly or indirectly."""
    wanted: dict[tuple[str, str, str], None] = {}
    pending = [inner for node in nodes for inner in _with_inner(node)]
    while pending:
        node = pending.pop()
        function = model.function(*node.callee)
        if function is not None and function.id not in wanted:
            wanted[function.id] = None
            pending += function.walk()
    for function in model.functions:
        if function.id in wanted:
            proto.functions.append(export_function(function))


def _with_inner(node: Node) -> Iterator[Node]:
    yield node
    for body in node.bodies:
        yield from body.walk()


def _host_of(model: Model, pieces: Sequence[_Piece]) -> Model:
    """Return the main graph with one node for each part that is not of the host."""
    proto = _frame(model)
    graph = proto.graph
    graph.name = model.main.name
    graph.doc_string = model.main.skeleton.doc_string
    mine = [piece for piece in pieces if piece.target == HOST]
    read = dict.fromkeys(value for piece in mine for value in piece.edge.inputs)
    main = model.main
    graph.input.extend(map(_info, main.inputs, main.input_infos))
    defaults = [value for value in main.inputs if value.is_overridable]
    _write_constants(graph, dict.fromkeys((*read, *defaults)), model)
    for piece in pieces:
        if piece.target == HOST:
            graph.node.extend(export_node(node, is_bare=True) for node in piece.nodes)
            continue
        call = graph.node.add(op_type=f"part_{piece.name}", domain=f"tiered.{piece.target}")
        call.name = f"part_{piece.name}"
        call.input.extend(value.name for value in piece.edge.variables)
        call.output.extend(value.name for value in piece.edge.outputs)
        if model.ir_version >= METADATA_SINCE:
            call.metadata_props.add(key="tiered.compiler", value=piece.target)
    known = {entry.domain for entry in proto.opset_import}
    for domain in sorted({node.domain for node in graph.node} - known - {"", "ai.onnx"}):
        proto.opset_import.add(domain=domain, version=1)
    graph.output.extend(map(_info, main.outputs, main.output_infos))
    _write_functions(proto, model, [node for piece in mine for node in piece.nodes])
    return Model.from_proto(proto, folder=model.folder, source="the host model")
