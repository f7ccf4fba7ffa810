"""Types of values: node by node in topological order, and again as passes edit.

The rules of `told` answer for nearly all nodes, and onnx's own inference for the rest. It sees no
weights: tensors up to `DATA_ELEMENTS` elements are kept, because shapes depend on them; larger ones
become typed inputs.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import onnx
from onnx import checker, shape_inference

from tiered.graph.core.journal import Edit, dirty_nodes
from tiered.graph.core.schema import has_too_many_parts, schema_of
from tiered.graph.core.types import (
    TensorType,
    ValueType,
    believed_type,
    read_type,
    tensor_type,
    write_type,
)
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.io.export import export_model, export_node
from tiered.graph.io.protos import nodes_of
from tiered.graph.queries.call_graph import expanded_size, recursive_functions
from tiered.graph.queries.long_lists import shortened
from tiered.graph.shape_inference.distrusted_onnx import is_misjudged
from tiered.graph.shape_inference.refine import Refiner
from tiered.graph.shape_inference.rules.contrib import (
    has_type_rule,
    ruled_types,
    types_by_signature,
)
from tiered.graph.shape_inference.told import told_types

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node

DATA_ELEMENTS: Final = 1024
MOST_PROPAGATED: Final = 1 << 20
MOST_EXPANDED: Final = 200_000

# What onnx raises for a model or node that it finds inconsistent; declared types then stand.
_INFERENCE_FAILURES = (
    shape_inference.InferenceError,
    checker.ValidationError,
    RuntimeError,
    ValueError,
    TypeError,
    MemoryError,  # absurd sizes
)


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
            for read in (*node._inputs, *node.captured)
            if read is not None and read._type is NOT_INFERRED and read.producer is not None
        ]
        if unknown and any(output._type is NOT_INFERRED for output in node._outputs if output):
            pending += unknown
            continue
        pending.pop()
        infer_node(node)


def infer_node(node: Node, *, invent: bool = False) -> None:
    """Infer the outputs of one node that have no type yet.

    Args:
        node: what it reads has its types already.
        invent: give dims that nothing is known of a name.
    """
    outputs = node._outputs
    for output in outputs:
        if output is not None and output._type is NOT_INFERRED:
            break
    else:
        return
    found = infer_outputs(node)
    dims = node.owner.model.dims
    for index, output in enumerate(outputs):
        if output is not None and output._type is NOT_INFERRED:
            kind = _believed(output, found[index] if index < len(found) else None)
            if invent and isinstance(kind, TensorType) and kind.shape and None in kind.shape:
                shape = tuple([dims.invent() if dim is None else dim for dim in kind.shape])
                kind = tensor_type(kind.dtype, shape)
            output._type = kind


def _believed(value: Value, inferred: ValueType | None) -> ValueType | None:
    """Return what to believe of a value: `believed_type`, without reading all that is declared."""
    info = value.declared
    if info is None:
        return inferred
    if (
        isinstance(inferred, TensorType)
        and inferred.shape is not None
        and info.type.tensor_type.elem_type == inferred.dtype
    ):
        return inferred
    return believed_type(read_type(info.type), inferred)


def infer_outputs(node: Node, ask_onnx: bool = True) -> Sequence[ValueType | None]:
    """Return the types of a node's outputs, in their order, as its operands are now.

    What the rules here cannot tell, onnx is asked, unless that is not wanted; of a node that it
    misjudges, for the dtypes.
    """
    if node.op_type == "Constant":
        return (_constant_type(node),)
    told = told_types(node)
    if told is not None and (told.is_whole or not ask_onnx or is_misjudged(node)):
        return told.types
    if not ask_onnx:
        return ()
    outer = onnx_types(node)
    found = [None if value is None else outer.get(value.name) for value in node._outputs]
    if is_misjudged(node):
        return [_shapeless(kind) for kind in found]
    if told is not None and found:
        found[0] = _completed(told.types[0], found[0])
    return found


def _shapeless(kind: ValueType | None) -> ValueType | None:
    return tensor_type(kind.dtype, None) if isinstance(kind, TensorType) else None


def _constant_type(node: Node) -> ValueType | None:
    tensor = node.constant_tensor()
    return None if tensor is None else tensor_type(tensor.dtype, tensor.shape)


def _completed(told: TensorType, inferred: ValueType | None) -> ValueType | None:
    """Return what onnx inferred, with the dims that it left open as the rules tell them."""
    if inferred is None:
        return told
    if not isinstance(inferred, TensorType) or told.shape is None:
        return inferred
    known = inferred.shape or (None,) * len(told.shape)
    if len(known) != len(told.shape):
        return inferred
    shape = [own if dim is None else dim for dim, own in zip(known, told.shape, strict=True)]
    return tensor_type(inferred.dtype, tuple(shape))


def onnx_types(node: Node) -> Mapping[str, ValueType | None]:
    """Return the types of a node's outputs by name, from the rule of its domain or from onnx."""
    if node.op_type == "Constant":
        return {node.output.name: _constant_type(node)} if node._outputs else {}
    if has_type_rule(node):
        return ruled_types(node)
    graph = node.owner
    schema = schema_of(node.op_type, node.domain, graph.opset(node.domain))
    if schema is None or node.has_references or has_too_many_parts(node):
        return {}
    reads = [value for value in (*node._inputs, *node.captured) if value is not None]
    types = {value.name: write_type(value.type) for value in reads}
    data = {
        value.name: tensor.to_proto(value.name)
        for value in reads
        if (tensor := value.tensor) is not None
        and not tensor.is_sparse
        and not tensor.is_on_disk
        and tensor.size <= DATA_ELEMENTS
    }
    proto = export_node(node, max_elements=DATA_ELEMENTS) if node.bodies else shortened(node)
    opsets = [onnx.helper.make_opsetid(d, v) for d, v in graph.root.opset_imports.items()]
    try:
        outputs = shape_inference.infer_node_outputs(
            schema, proto, types, data, None, opsets, graph.model.ir_version
        )
    except _INFERENCE_FAILURES:
        outputs = {}
    inferred = {name: read_type(proto) for name, proto in outputs.items()}
    if not node.domain:
        return inferred
    # onnx infers a few operators of its other domains only.
    known = {name: kind for name, kind in inferred.items() if kind is not None}
    return {**inferred, **types_by_signature(node, schema), **known}


def infer_model(model: ModelState) -> None:
    """Infer every value that has no type yet.

    Node by node in topological order, so that each is looked at once, with all that is known of
    its operands. Through bodies and local functions onnx finds the way, by one inference of the
    whole model; what follows from partially known values is told afterwards.

    Dims of which nothing is known get invented names (`unk__0`). They hold for the whole model, are
    kept in the view and are never saved. A second inference would invent them anew, so there is
    only one.
    """
    model.is_inferred = True
    for value in model.main.initializers:
        if value._type is NOT_INFERRED:
            infer_value(value)
    if not model.functions and not model.main._owners:
        for node in model.main.topological_order():
            infer_node(node, invent=True)
        return
    misjudged = [node for graph in model.graphs() for node in graph.nodes if is_misjudged(node)]
    _infer_whole(model, misjudged)
    order = [node for graph in model.graphs() for node in graph.topological_order()]
    # What reads them, onnx has not inferred.
    Refiner(model, infer_outputs, _write_type).run(order, inferred=not misjudged)


def _infer_whole(model: ModelState, misjudged: Sequence[Node]) -> None:
    """Infer all that has no type yet by one run of onnx, but what follows from misjudged nodes."""
    for graph in model.graphs():
        for value in graph._values.values():
            if value._tensor is not None and value._type is NOT_INFERRED:
                value._type = tensor_type(value._tensor.dtype, value._tensor.shape)
    try:
        proto = export_model(model, max_elements=DATA_ELEMENTS, for_inference=True)
        hidden = {value.name for node in misjudged for value in node.outputs if value is not None}
        if hidden:
            hide_outputs(proto, hidden)
        if not calls_are_bounded(model):
            model.note("the local functions call each other too often to infer through them")
            del proto.functions[:]
        elif _parts_are_open(model):
            model.note("a call decides how many parts a Split has, so nothing is inferred of calls")
            del proto.functions[:]
        inferred = shape_inference.infer_shapes(proto, data_prop=propagation_is_bounded(model))
    except _INFERENCE_FAILURES as error:
        model.note(f"shape inference failed, only declared types are known: {error}")
        inferred = None
    open_shapes = [] if inferred is None else _take_types(model.main, inferred.graph)
    open_shapes += [value for node in misjudged for value in node.outputs if value is not None]
    # A form that onnx stops at is no reason to believe what a file says of it: rules come first.
    for value in open_shapes:
        if value.producer is not None:
            infer_node(value.producer, invent=True)
    for graph in model.graphs():
        # onnx infers a function where it is called; what is known without is true of every call.
        for node in graph.topological_order() if graph.root.is_function else ():
            infer_node(node)
    for graph in model.graphs():
        for value in graph._values.values():
            if value._type is NOT_INFERRED and not _is_being_built(value.producer):
                value._type = None if value.declared is None else read_type(value.declared.type)


def hide_outputs(proto: onnx.ModelProto, names: Container[str]) -> None:
    """Rename these outputs of nodes, so that nothing is known of what reads them."""
    for node in nodes_of(proto):
        node.output[:] = [f"{name} hidden" if name in names else name for name in node.output]


def _parts_are_open(model: ModelState) -> bool:
    """Tell whether a call decides num_outputs: too few of them, and onnx ends the whole process."""
    inner = (node for function in model.functions for node in function.walk())
    return any(node.is_op("Split") and node.has_references for node in inner)


def can_be_followed(model: ModelState) -> bool:
    """Return whether onnx's inference comes to an end on the calls of local functions."""
    return calls_are_bounded(model) and not _parts_are_open(model)


def _is_being_built(node: Node | None) -> bool:
    """Tell whether a node has bodies that are still empty: what it gives is not to be known yet."""
    return node is not None and any(not body._outputs for body in node.bodies)


def calls_are_bounded(model: ModelState) -> bool:
    """Tell whether onnx's inference, which follows every call, comes to an end soon.

    Thirty functions that each call the next one twice are a thousand million calls.
    """
    if not model.functions:
        return True
    return not recursive_functions(model) and expanded_size(model, ()) <= MOST_EXPANDED


def propagation_is_bounded(model: ModelState) -> bool:
    """Tell whether the values that onnx propagates stay small.

    It computes small integer tensors as it goes; forty Concats of a value with itself make it one
    of a million million elements, and so does a single Range.
    """
    sizes: dict[Value, int] = {}
    for graph in model.graphs():
        for node in graph.topological_order():
            read = [
                sizes.get(value, _propagated_size(value))
                for value in node._inputs
                if value is not None
            ]
            size = sum(read) if node.op_type == "Concat" else max(read, default=0)
            if size > MOST_PROPAGATED and node.op_type == "Concat":
                return False
            if node.op_type == "Range" and _counted(node) > MOST_PROPAGATED:
                return False
            for value in node._outputs:
                if value is not None:
                    sizes[value] = min(size, MOST_PROPAGATED)
    return True


def _counted(node: Node) -> float:
    """Return about how many numbers a Range of constants gives; 0 if its operands are none."""
    tensors = [value.default or value.tensor if value else None for value in node._inputs]
    known = [tensor for tensor in tensors if tensor and not tensor.is_sparse and tensor.size == 1]
    if len(known) < 3:
        return 0.0
    start, limit, step = (float(tensor.numpy().item()) for tensor in known)
    return (limit - start) / step if step else 0.0


def _propagated_size(value: Value) -> int:
    """Return how many elements of a value onnx knows: of an input, at most those of a shape."""
    if value._tensor is None:
        return 16
    return value._tensor.size if value._tensor.size <= DATA_ELEMENTS else 0


def _take_types(graph: Graph, proto: onnx.GraphProto) -> list[Value]:
    """Take over what onnx inferred; return those of which only a file knows the shape."""
    open_shapes = list[Value]()
    for infos in (proto.value_info, proto.output):
        for info in infos:
            value = graph._values.get(info.name)
            if value is not None and value._type is NOT_INFERRED:
                declared = None if value.declared is None else read_type(value.declared.type)
                inferred = read_type(info.type)
                if declared and isinstance(inferred, TensorType) and inferred.shape is None:
                    open_shapes.append(value)
                else:
                    value._type = believed_type(declared, inferred)
    if not any(node.bodies for node in graph._nodes.values()):
        return open_shapes
    for node, exported in zip(graph.topological_order(), proto.node, strict=True):
        bodies = iter(node.bodies)
        for attribute in exported.attribute if node.bodies else ():
            if attribute.ref_attr_name:
                continue
            if attribute.type == onnx.AttributeProto.GRAPH:
                open_shapes += _take_types(next(bodies), attribute.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for body in attribute.graphs:
                    open_shapes += _take_types(next(bodies), body)
    return open_shapes


def refresh_types(model: ModelState) -> None:
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
        # What the node of a body gives follows from what the body does.
        bodies = {node.owner for node in pending}
        pending += sorted({body.owner for body in bodies if body.owner}, key=lambda node: node.id)
    Refiner(model, infer_outputs, _state_type).run(pending, inferred=False)
    model.types_stamp = journal.stamp()


def _write_type(value: Value, value_type: ValueType | None) -> None:
    value._type = value_type


def _state_type(value: Value, value_type: ValueType | None) -> None:
    # What is inferred may contradict the file where that is wrong: it is not held against it.
    value.owner._log(Edit.SET_TYPE, value, value._type)
    value._type = value_type
