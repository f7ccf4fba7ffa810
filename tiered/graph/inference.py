"""Types by onnx's own shape inference: the whole model once, then node by node as passes edit.

Inference runs on a model without weights: tensors up to `DATA_ELEMENTS` elements are kept, because
shapes depend on them; larger ones become typed inputs.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import onnx
from onnx import shape_inference

from tiered.graph.export import export_model
from tiered.graph.journal import dirty_nodes
from tiered.graph.schema import schema_of
from tiered.graph.shape_rules import refine_shapes
from tiered.graph.types import (
    OpaqueType,
    TensorType,
    ValueType,
    merge_types,
    read_type,
    static_size,
    tensor_type,
    write_type,
)
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.model import Model
    from tiered.graph.node import Node

DATA_ELEMENTS: Final = 1024

# What onnx raises for a model or node that it finds inconsistent; declared types then stand.
_INFERENCE_FAILURES = (shape_inference.InferenceError, RuntimeError, ValueError, TypeError)


def infer_value(value: Value) -> None:
    """Find the type of a value that nobody has asked for yet, and of all that it depends on."""
    if value._tensor is not None:
        value._type = tensor_type(value._tensor.dtype, value._tensor.shape)
        return
    if value.graph is None or value.producer is None:
        value._type = None if value.declared is None else read_type(value.declared.type)
        return
    model = value.graph.model
    if not model.is_inferred:
        infer_model(model)
    # A stack, because a chain of new nodes may be longer than Python's own one is deep.
    pending = [value.producer]
    while pending:
        node = pending[-1]
        unknown = [
            read.producer
            for read in node._inputs
            if read is not None and read._type is NOT_INFERRED and read.producer is not None
        ]
        if unknown and any(output._type is NOT_INFERRED for output in node._outputs if output):
            pending += unknown
            continue
        pending.pop()
        infer_node(node)


def infer_node(node: Node) -> None:
    """Infer the outputs of one node that have no type yet."""
    missing = [output for output in node._outputs if output and output._type is NOT_INFERRED]
    if not missing:
        return
    inferred = _infer_outputs(node)
    for output in missing:
        declared = None if output.declared is None else read_type(output.declared.type)
        output._type = merge_types(declared, inferred.get(output.name))


def _infer_outputs(node: Node) -> dict[str, ValueType | None]:
    if node.op_type == "Constant":
        tensor = node.constant_tensor()
        kind = None if tensor is None else tensor_type(tensor.dtype, tensor.shape)
        return {node.output.name: kind} if node._outputs else {}
    graph = node.owner
    schema = schema_of(node.op_type, node.domain, graph.opset(node.domain))
    if schema is None or node.bodies or node.has_references:
        return {}
    reads = [value for value in node._inputs if value is not None]
    types = {value.name: write_type(value.type) for value in reads}
    data = {
        value.name: tensor.to_proto(value.name)
        for value in reads
        if (tensor := value.tensor) is not None
        and not tensor.is_sparse
        and not tensor.is_external
        and tensor.size <= DATA_ELEMENTS
    }
    opsets = [onnx.helper.make_opsetid(d, v) for d, v in graph.root.opset_imports.items()]
    try:
        outputs = shape_inference.infer_node_outputs(
            schema, node.proto, types, data, None, opsets, graph.model.ir_version
        )
    except _INFERENCE_FAILURES:
        return {}
    return {name: read_type(proto) for name, proto in outputs.items()}


def infer_model(model: Model) -> None:
    """Infer every value that has no type yet by one whole-model inference.

    onnx invents names (`unk__0`) for unknown dims; they hold for the whole model, are kept in the
    view and are never saved. A second inference would invent them anew, so there is only one.
    """
    model.is_inferred = True
    for graph in model.graphs():
        for value in graph._values.values():
            if value._tensor is not None and value._type is NOT_INFERRED:
                value._type = tensor_type(value._tensor.dtype, value._tensor.shape)
    try:
        proto = export_model(model, max_elements=DATA_ELEMENTS, for_inference=True)
        inferred = shape_inference.infer_shapes(proto, data_prop=True)
    except _INFERENCE_FAILURES as error:
        model.note(f"shape inference failed, only declared types are known: {error}")
        inferred = None
    if inferred is not None:
        _take_types(model.main, inferred.graph)
    for graph in model.graphs():
        for value in graph._values.values():
            if value._type is NOT_INFERRED:
                value._type = None if value.declared is None else read_type(value.declared.type)
    refine_shapes(model, _infer_outputs)


def _take_types(graph: Graph, proto: onnx.GraphProto) -> None:
    for infos in (proto.value_info, proto.output):
        for info in infos:
            value = graph._values.get(info.name)
            if value is not None and value._type is NOT_INFERRED:
                declared = None if value.declared is None else read_type(value.declared.type)
                value._type = merge_types(declared, read_type(info.type))
    if not any(node.bodies for node in graph._nodes.values()):
        return
    for node, exported in zip(graph.topological_order(), proto.node, strict=True):
        bodies = iter(node.bodies)
        for attribute in exported.attribute if node.bodies else ():
            if attribute.HasField("g"):
                _take_types(next(bodies), attribute.g)
            for body in attribute.graphs:
                _take_types(next(bodies), body)


def refresh_types(model: Model) -> None:
    """Infer what has no type yet, and again whatever reads a value that is known better now.

    Only nodes that edits since the last call concern are looked at. A type is only ever made more
    exact; a change is an edit like any other.
    """
    if not model.is_inferred:
        infer_model(model)
        model.types_stamp = model.journal.stamp()
        return
    stamp, journal = model.types_stamp, model.journal
    if stamp is not None and not journal.moved_since(stamp):
        return
    if stamp is None or journal.kept_since(stamp) < stamp.length:
        pending = [node for graph in model.graphs() for node in graph.nodes]
    else:
        pending = dirty_nodes(journal.since(stamp.length))
    queue = deque(pending)
    while queue:
        node = queue.popleft()
        if node.graph is None:
            continue
        refined = _refine_outputs(node)
        for value in refined:
            queue.extend(use.node for use in value.users)
    model.types_stamp = journal.stamp()


def _refine_outputs(node: Node) -> list[Value]:
    """Infer a node again; return the outputs whose types became more exact."""
    outputs = [value for value in node._outputs if value is not None]
    known = {value: value.type for value in outputs}
    if all(_is_complete(value_type) for value_type in known.values()):
        return []
    inferred = _infer_outputs(node)
    refined = []
    for value, before in known.items():
        after = merge_types(before, inferred.get(value.name))
        if after != before and _knows_more(after, before):
            node.owner.set_type(value, after)
            refined.append(value)
    return refined


def _is_complete(value_type: ValueType | None) -> bool:
    return isinstance(value_type, OpaqueType) or (
        value_type is not None and static_size(value_type.shape) is not None
    )


def _knows_more(after: ValueType | None, before: ValueType | None) -> bool:
    """Tell whether a type gained a dtype, a rank, a size or a name, and lost none."""
    if before is None:
        return after is not None
    if not isinstance(after, TensorType) or not isinstance(before, TensorType):
        return False
    if before.shape is None or after.shape is None:
        return after.shape is not None
    return any(
        (isinstance(new, int) and not isinstance(old, int)) or (old is None and new is not None)
        for new, old in zip(after.shape, before.shape, strict=True)
    ) and not any(
        isinstance(old, int) and new != old
        for new, old in zip(after.shape, before.shape, strict=True)
    )
