"""Changes of the declared types of inputs and outputs, and of the types that depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from tiered.graph.core.types import (
    OpaqueType,
    ValueType,
    contradict,
    is_compatible,
    read_type,
    tensor_type,
    write_type,
)
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.value import Value


def set_declared_type(graph: Graph, value: Value, value_type: ValueType) -> None:
    """Change the declared type of an input or output of a graph.

    Types that depend on an input are inferred again. Value_info that contradicts the new type is
    dropped.

    Raises:
        ModelError: the graph has no declaration of the value, its contents have another type, or
            an output is computed with another dtype or rank.
    """
    is_input, is_output = value in graph._inputs, value in graph._outputs
    if graph.is_function or not (is_input or is_output):
        raise ModelError(
            f"{value.name!r} has no declaration in graph {graph.name!r}: it is no input or output "
            "of a main graph or body"
        )
    _check_contents(value, value_type)
    with graph.model.transaction():
        if is_input:
            inputs = _written(graph._inputs, graph._input_infos, value, value_type)
            graph.set_graph_inputs(graph._inputs, inputs)
        if is_output:
            outputs = _written(graph._outputs, graph._output_infos, value, value_type)
            graph.set_graph_outputs(graph._outputs, outputs)
        graph.model.forget_types()
        _check_computed(value, value_type)
        for each in graph.model.graphs():
            drop_contradicted(each)


def _check_contents(value: Value, value_type: ValueType) -> None:
    tensor = value.default or value.tensor
    if tensor is None or isinstance(value_type, OpaqueType):
        return
    known = tensor_type(tensor.dtype, tensor.shape)
    # A default may be fed by tensors of other sizes, but has the dtype and rank of all of them.
    if not is_compatible(value_type, known):
        raise ModelError(
            f"{value.name!r} is {known} by its contents, it cannot be declared {value_type}; "
            "change the contents (set_constant, assign)"
        )


def _check_computed(value: Value, value_type: ValueType) -> None:
    """Raise if an output surely has another type."""
    node = value.producer
    if node is None:
        return
    found = node.owner.model.types.outputs_of(node)
    kind = found[value.index] if value.index < len(found) else None
    if not is_compatible(kind, value_type):
        raise ModelError(
            f"{value.name!r} is computed as {kind}, it cannot be declared {value_type}"
        )


def _written(
    values: list[Value], infos: list[onnx.ValueInfoProto], value: Value, value_type: ValueType
) -> list[onnx.ValueInfoProto]:
    """Return the declarations with the type of one value replaced."""
    after = list(infos)
    for at, (shown, info) in enumerate(zip(values, infos, strict=True)):
        if shown is value:
            after[at] = onnx.ValueInfoProto()
            after[at].CopyFrom(info)
            after[at].type.CopyFrom(write_type(value_type))
    return after


def drop_contradicted(graph: Graph) -> list[str]:
    """Drop the value_info with a dtype, rank or size that contradicts the inferred type.

    Returns:
        a message for each.
    """
    kept: list[tuple[Value | None, onnx.ValueInfoProto]] = []
    dropped: list[str] = []
    for value, info in graph.declarations:
        stated = read_type(info.type)
        if value is None or not contradict(stated, value.type):
            kept.append((value, info))
        else:
            dropped.append(f"{value.name!r}: {stated}, and it is {value.type}")
    if dropped:
        graph.set_declarations(kept)
    return dropped


def drop_false_declarations(model: ModelState) -> list[str]:
    """Drop all inner declarations that contradict the inferred types; return a message for each.

    Outputs of bodies keep their dtype.
    """
    dropped: list[str] = []
    for graph in model.graphs():
        dropped += drop_contradicted(graph)
        if graph.parent_node is not None:
            dropped += _forget_false_sizes(graph)
    return list(dict.fromkeys(dropped))


def _forget_false_sizes(body: Graph) -> list[str]:
    infos, dropped = list(body.output_infos), list[str]()
    for at, (value, info) in enumerate(zip(body.outputs, infos, strict=True)):
        stated, found = read_type(info.type), value.type
        if contradict(stated, found):
            infos[at] = onnx.ValueInfoProto()
            infos[at].CopyFrom(info)
            infos[at].type.tensor_type.ClearField("shape")
            dropped.append(f"{value.name!r}: {stated}, and it is {found}")
    if dropped:
        body.set_graph_outputs(body.outputs, infos)
    return dropped
