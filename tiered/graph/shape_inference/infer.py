"""Types of values: node by node in topological order, and again as passes edit.

The shape rules infer nearly all nodes, and onnx's own inference the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import onnx

from tiered.graph.core.edit import Edit
from tiered.graph.core.journal import dirty_nodes
from tiered.graph.core.types import OpaqueType, TensorType, ValueType, read_type, tensor_type
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.shape_inference.onnx_inference import (
    inferred_model,
    onnx_inference_is_unsound,
    onnx_types,
)
from tiered.graph.shape_inference.refine import Refiner
from tiered.graph.shape_inference.rules.shape_rule import INAPPLICABLE, TYPES

if TYPE_CHECKING:
    from tiered.graph.core.edit import Stamp
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node

OLDEST_OPSET: Final = 7
"""The oldest version of onnx's opset that rules infer; before, broadcasting differed."""


# --- one node -------------------------------------------------------------------------------------


class InferredTypes(NamedTuple):
    """The types that a shape rule infers for a node.

    Attributes:
        types: the types of the outputs, in their order.
        is_final: whether onnx cannot add anything.
    """

    types: Sequence[ValueType | None]
    is_final: bool


def infer_value(value: Value) -> None:
    """Infer the type of a value, and of all values that it depends on."""
    assert value.producer is not None
    # A stack, because a chain of new nodes may exceed Python's recursion limit.
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
        node: a node whose operands have their types.
        invent: give unknown dims a name.
    """
    outputs = node._outputs
    for output in outputs:
        if output is not None and output._type is NOT_INFERRED:
            break
    else:
        return
    found = infer_outputs(node)
    for index, output in enumerate(outputs):
        if output is not None and output._type is NOT_INFERRED:
            kind = found[index] if index < len(found) else None
            if output.declared is not None:
                kind = _merged_type(output.declared, kind)
            if invent and isinstance(kind, TensorType) and kind.shape and None in kind.shape:
                dims = node.owner.model.dims
                shape = tuple([dims.invent() if dim is None else dim for dim in kind.shape])
                kind = tensor_type(kind.dtype, shape)
            output._type = kind


def _merged_type(info: onnx.ValueInfoProto | None, inferred: ValueType | None) -> ValueType | None:
    """Return the type of a value: the inferred one, or else the one that the file declares.

    Some files have inputs that were made dynamic, and inner shapes that still declare batch 1:
    folding such a size would be wrong. A declaration counts only if nothing is inferred, as for the
    outputs of unknown operators.
    """
    if info is None:
        return inferred
    if (
        isinstance(inferred, TensorType)
        and inferred.shape is not None
        and info.type.tensor_type.elem_type == inferred.dtype
    ):
        return inferred
    return read_type(info.type) or inferred


def infer_outputs(node: Node, ask_onnx: bool = True) -> Sequence[ValueType | None]:
    """Return the types of a node's outputs, in their order, as its operands are now.

    Where a rule does not infer everything, onnx does unless `ask_onnx` is False; where onnx is
    unsound, only its dtypes count.
    """
    ruled = inferred_types(node)
    if ruled is not None and (ruled.is_final or not ask_onnx or onnx_inference_is_unsound(node)):
        return ruled.types
    if not ask_onnx:
        return ()
    found = onnx_types(node)
    if onnx_inference_is_unsound(node):
        return [_without_shape(kind) for kind in found]
    if ruled is not None and found:
        return [_with_known_dims(found[0], ruled.types[0]), *found[1:]]
    return found


def inferred_types(node: Node) -> InferredTypes | None:
    """Return the types that the shape rule of a node infers; None if it has none, or declines."""
    registered = TYPES.find((node.domain, node.op_type))
    if registered is None or (node.domain and _is_call(node)):
        return None
    rule, takes_operands, ask_onnx = registered
    try:
        if takes_operands:
            if node.has_references or (not node.domain and node.owner.opset() < OLDEST_OPSET):
                return None
            operands: list[TensorType] = []
            for value in node._inputs:
                if value is None:
                    continue
                kind = value._type
                if type(kind) is not TensorType:
                    kind = value.type
                    if type(kind) is not TensorType:
                        return None
                operands.append(kind)
            found = rule(node, operands)
        else:
            found = rule(node)
    except INAPPLICABLE:
        return None
    if found is None:
        return None
    if isinstance(found, TensorType):
        is_final = not ask_onnx or None not in (found.shape or (None,))
    elif isinstance(found, OpaqueType):
        is_final = True
    else:
        return InferredTypes(found, True)
    if len(node._outputs) != 1 and not node.domain:
        return None  # onnx infers the other outputs too
    return InferredTypes((found,), is_final)


def _is_call(node: Node) -> bool:
    """Return whether the model defines the operator of a node by a local function."""
    return any(function.id == node.callee for function in node.owner.model.functions)


def _without_shape(kind: ValueType | None) -> ValueType | None:
    return tensor_type(kind.dtype, None) if isinstance(kind, TensorType) else None


def _with_known_dims(inferred: ValueType | None, ruled: ValueType | None) -> ValueType | None:
    """Return the type that onnx inferred, with the dims of the rule where onnx knows none."""
    if inferred is None or ruled is None:
        return inferred or ruled
    if not isinstance(inferred, TensorType) or not isinstance(ruled, TensorType):
        return inferred
    if ruled.shape is None:
        return inferred
    known = inferred.shape or (None,) * len(ruled.shape)
    if len(known) != len(ruled.shape):
        return inferred
    shape = [own if dim is None else dim for dim, own in zip(known, ruled.shape, strict=True)]
    return tensor_type(inferred.dtype, tuple(shape))


# --- the whole model ------------------------------------------------------------------------------


def infer_model(model: ModelState) -> None:
    """Infer every value that has no type yet.

    Without bodies and local functions, node by node in topological order, so that each node is
    inferred once. Otherwise onnx infers the whole model at once, and the shape rules refine the
    result.

    Unknown dims get invented names (`unk__0`). They are valid in the whole model, are kept in the
    view and are never saved. A second inference would invent other names, so there is only one.
    """
    for value in model.main.initializers:
        _read_type_of_constant(value)
    if not model.functions and not model.main._body_nodes:
        for node in model.main.topological_order():
            infer_node(node, invent=True)
        return
    unsound = [
        node for graph in model.graphs() for node in graph.nodes if onnx_inference_is_unsound(node)
    ]
    open_values = set(_infer_at_once(model, unsound))
    order = [node for graph in model.graphs() for node in graph.topological_order()]
    refiner = Refiner(model, infer_outputs, _write_type)
    # onnx has not inferred the consumers of unsound nodes.
    refiner.run(order, inferred=not unsound)
    for value in (v for node in order for v in node._outputs if v in open_values):
        # One after the other: a declaration may say what the others leave out.
        kind = value._type
        if value.declared is None or not (isinstance(kind, TensorType) or kind is None):
            continue
        if kind is None or kind.shape is None:
            value._type = _merged_type(value.declared, kind)
            refiner.run(refiner.readers(value), inferred=False)


def _infer_at_once(model: ModelState, unsound: Sequence[Node]) -> list[Value]:
    """Infer all values by one run of onnx, except for those that depend on unsound nodes.

    Returns:
        The values without a shape from onnx; shape rules or the file may know one.
    """
    for graph in model.graphs():
        for value in graph._values.values():
            _read_type_of_constant(value)
    hidden = [value for node in unsound for value in node.outputs if value is not None]
    proto = inferred_model(model, {value.name for value in hidden})
    open_values = [] if proto is None else _take_types(model.main, proto)
    # onnx may stop at a form that it does not know: the shape rules count before declarations.
    for value in hidden:
        if not _is_being_built(value.producer):
            value._type = None
    for graph in model.graphs():
        # onnx infers a function at its calls; types that follow without them hold at every call.
        for node in graph.topological_order() if graph.root.is_function else ():
            infer_node(node)
    for graph in model.graphs():
        for value in graph._values.values():
            if value._type is NOT_INFERRED and not _is_being_built(value.producer):
                value._type = _merged_type(value.declared, None)
    return open_values + hidden


def _read_type_of_constant(value: Value) -> None:
    if value._tensor is not None and value._type is NOT_INFERRED:
        value._type = tensor_type(value._tensor.dtype, value._tensor.shape)


def _is_being_built(node: Node | None) -> bool:
    """Return whether a node has bodies that are still empty: its outputs are inferred later."""
    return node is not None and any(not body._outputs for body in node.bodies)


def _take_types(graph: Graph, proto: onnx.GraphProto) -> list[Value]:
    """Set the types that onnx inferred; return the values whose shape only the file declares."""
    open_values = list[Value]()
    for infos in (proto.value_info, proto.output):
        for info in infos:
            value = graph._values.get(info.name)
            if value is not None and value._type is NOT_INFERRED:
                inferred = read_type(info.type)
                declared = _merged_type(value.declared, None)
                if declared and isinstance(inferred, TensorType) and inferred.shape is None:
                    value._type = inferred
                    open_values.append(value)
                else:
                    value._type = _merged_type(value.declared, inferred)
    if not any(node.bodies for node in graph._nodes.values()):
        return open_values
    for node, exported in zip(graph.topological_order(), proto.node, strict=True):
        bodies = iter(node.bodies)
        for attribute in exported.attribute if node.bodies else ():
            if attribute.ref_attr_name:
                continue
            if attribute.type == onnx.AttributeProto.GRAPH:
                open_values += _take_types(next(bodies), attribute.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for body in attribute.graphs:
                    open_values += _take_types(next(bodies), body)
    return open_values


def refresh_types(model: ModelState, stamp: Stamp | None) -> Stamp:
    """Infer missing types, and infer again the consumers of values with refined types.

    Only nodes that edits since the stamp concern are inferred; all of them without a stamp. A type
    only ever becomes more exact; the change is an edit like any other.

    Returns:
        The stamp for the next call.
    """
    journal = model.journal
    if stamp is not None and not journal.moved_since(stamp):
        return stamp
    if stamp is None or journal.kept_since(stamp) < stamp.length:
        pending = [node for graph in model.graphs() for node in graph.nodes]
    else:
        pending = dirty_nodes(journal.since(stamp.length))
        # The outputs of a node with bodies follow from its bodies.
        around = {graph.parent_node for graph in {node.owner for node in pending}}
        pending += sorted(node for node in around if node is not None)
    Refiner(model, infer_outputs, _log_type).run(pending, inferred=False)
    return journal.stamp()


def _write_type(value: Value, value_type: ValueType | None) -> None:
    value._type = value_type


def _log_type(value: Value, value_type: ValueType | None) -> None:
    # Written without the checks of set_type: an inferred type may contradict a wrong declaration.
    value.owner._log(Edit.SET_TYPE, value, value._type)
    value._type = value_type
