"""The check by onnx.checker, without the weights, of all that passes may break."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import onnx
from onnx import checker, shape_inference

from tiered.graph.core.lazy_bytes import is_stored
from tiered.graph.core.schema import EARLY_OPERATORS, operators_of
from tiered.graph.core.types import TensorType, is_compatible, read_type, write_type
from tiered.graph.io.export import export_model, without_invented
from tiered.graph.io.protos import graphs_of, nodes_of
from tiered.graph.io.save import tensors_of
from tiered.graph.queries.onnx_errors import first_cause
from tiered.graph.shape_inference.onnx_inference import (
    hide_outputs,
    is_inferable,
    node_complaint,
    onnx_inference_is_unsound,
)
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_SMALL: Final = 1024
"""Initializers up to this many elements are checked too; larger ones are not."""


_EARLY_DOMAIN: Final = "tiered.early"
"""The domain of early operators in a model for the checker."""


def check_model(model: ModelState) -> None:
    """Run the full check of onnx.checker on a model, dtypes and dims included.

    Raises:
        ModelError: the checker rejects it, but accepted the model as it was loaded.
    """
    complaint = current_complaint(model)
    if complaint is None:
        return
    before = model.complaint_as_loaded()
    if before is None:
        raise ModelError(f"onnx.checker rejects the result: {complaint}")
    model.note(f"onnx.checker rejects the model as it was loaded: {before}")


def current_complaint(model: ModelState, *, early: bool = False) -> str | None:
    """Return the complaint of onnx.checker about a model; None if it accepts the model.

    A complaint that depends on unsound inference by onnx does not count.

    Args:
        model: the model.
        early: whether to accept operators that ONNX has only at later opsets, but runtimes
            already here (`Node.is_early`).
    """
    proto = _checkable(model, early=early)
    if early:
        _make_custom(proto)
    complaint = _complaint(proto, full=is_inferable(model))
    if complaint is None or _complaint(proto, full=False) is not None:
        return complaint
    unsound = [
        node for graph in model.graphs() for node in graph.nodes if onnx_inference_is_unsound(node)
    ]
    hidden = {value.name for node in unsound for value in node.outputs if value is not None}
    if not hidden:
        return complaint
    hide_outputs(proto, hidden)
    return _type_complaint(proto)


def without_false_errors(model: ModelState) -> onnx.ModelProto | None:
    """Return a model, large weights left out, if onnx rejects it only as a whole; else None.

    It passes the checks without inference, no type contradicts another one, and of each node the
    inference has all that is known: onnx's inference of a whole model does not know the constants
    that a body captures, and takes some operands for present or absent by their contents.
    """
    proto = _checkable(model)
    if _complaint(proto, full=False) is not None or wrong_declarations(model):
        return None
    nodes = (node for graph in model.graphs() for node in graph.nodes)
    if any(not node.bodies and node_complaint(node) is not None for node in nodes):
        return None
    return export_model(model, max_elements=_SMALL)


def early_nodes(model: ModelState) -> list[Node]:
    """Return the nodes that ONNX has only at later opsets, but runtimes run (`Node.is_early`)."""
    return [node for graph in model.graphs() for node in graph.nodes if node.is_early]


def _make_custom(proto: onnx.ModelProto) -> None:
    """Give early operators a domain that onnx does not know, so that it checks all others."""
    for node in nodes_of(proto):
        if node.op_type in EARLY_OPERATORS and not node.domain:
            node.domain = _EARLY_DOMAIN
    proto.opset_import.add(domain=_EARLY_DOMAIN, version=1)
    for function in proto.functions:
        function.opset_import.add(domain=_EARLY_DOMAIN, version=1)


def is_only_declared(model: ModelState, outputs: Collection[str] = ()) -> bool:
    """Return whether onnx accepts a model, apart from the declared types of inner values.

    No runtime fails because of them. They are wrong in models with inputs made dynamic afterwards.

    Args:
        model: the model.
        outputs: the outputs with declared shapes that are ignored too.
    """
    proto = _checkable(model)
    for graph in graphs_of(proto):
        del graph.value_info[:]
    for function in proto.functions:
        del function.value_info[:]
    if not outputs:
        return _complaint(proto, full=is_inferable(model)) is None
    if _complaint(proto, full=False) is not None:
        return False
    for info in proto.graph.output:  # the checker requires a shape there
        if info.name in outputs:
            info.type.tensor_type.ClearField("shape")
    return _type_complaint(proto) is None


def wrong_declarations(model: ModelState) -> dict[str, str]:
    """Return a message for each wrongly declared value of the main graph, by its name.

    The type inferred from the inputs has another dtype, another rank, or another size in a dim.
    """
    wrong = dict[str, str]()
    for value in model.main.values.values():
        info = value.declared
        if info is None or value.producer is None or not isinstance(value.type, TensorType):
            continue
        declared = read_type(info.type)
        if isinstance(declared, TensorType) and not is_compatible(value.type, declared):
            kind = read_type(without_invented(write_type(value.type)))
            wrong[value.name] = f"{value.name!r} is declared {declared}, and computed as {kind}"
    return wrong


def _clear_negative_dims(proto: onnx.ModelProto) -> None:
    """Make negative dims unknown: they end the process in which onnx infers."""
    infos = [info for function in proto.functions for info in function.value_info]
    for graph in graphs_of(proto):
        infos += (*graph.input, *graph.output, *graph.value_info)
    for info in infos:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.Clear()


def _checkable(model: ModelState, *, early: bool = False) -> onnx.ModelProto:
    """Return a model without its weights and without operators that onnx does not define.

    With `early`, those that it defines only at later opsets are left out as well.
    """
    proto = export_model(model, max_elements=_SMALL)
    # The checker parses all that it gets, and in exports of torch.export most is metadata.
    for made in proto.graph.node:
        made.ClearField("metadata_props")
    _clear_negative_dims(proto)
    _make_inputs_of_undefined(model, proto, early=early)
    if not model.has_stored_constants:
        return proto
    for node in nodes_of(proto):
        if node.op_type == "Constant" and node.attribute and is_stored(node.attribute[0].t):
            _leave_out_numbers(node.attribute[0])
    for tensor in tensors_of(proto):
        if is_stored(tensor):  # the checker requires data if there are elements
            tensor.CopyFrom(onnx.TensorProto(data_type=tensor.data_type, dims=[0]))
    return proto


def _make_inputs_of_undefined(model: ModelState, proto: onnx.ModelProto, *, early: bool) -> None:
    """Make the outputs of operators that onnx does not define inputs of the main graph.

    After a node that it does not know, onnx's inference reports no error of any other node.
    """
    functions = {function.id[:2] for function in model.functions}
    inputs: dict[str, onnx.ValueInfoProto] = {}
    for node in model.main.nodes:
        is_call = (node.domain, node.op_type) in functions
        is_defined = bool(operators_of(node.domain))
        if early and node.is_early:
            is_defined = False
        if is_defined or node.bodies or is_call:
            continue
        infos = [_info(value) for value in node.outputs if value is not None]
        if all(info.type.tensor_type.HasField("shape") for info in infos):
            inputs.update((info.name, info) for info in infos)
    if not inputs:
        return
    kept = [node for node in proto.graph.node if not inputs.keys() & set(node.output)]
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    proto.graph.input.extend(inputs.values())


def _info(value: Value) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=value.name, type=without_invented(write_type(value.type)))


def _leave_out_numbers(value: onnx.AttributeProto) -> None:
    """Make the value of a Constant sparse and empty: the same type, but no data to check."""
    empty = onnx.SparseTensorProto(dims=value.t.dims)
    empty.values.CopyFrom(onnx.TensorProto(name="values", data_type=value.t.data_type, dims=[0]))
    empty.indices.CopyFrom(
        onnx.TensorProto(name="indices", data_type=onnx.TensorProto.INT64, dims=[0])
    )
    kind = onnx.AttributeProto.SPARSE_TENSOR
    value.CopyFrom(onnx.AttributeProto(name="sparse_value", type=kind, sparse_tensor=empty))


def _complaint(proto: onnx.ModelProto, *, full: bool = True) -> str | None:
    try:
        checker.check_model(proto, full_check=full)
    except shape_inference.InferenceError as error:
        return first_cause(error)
    except (checker.ValidationError, ValueError, RuntimeError, MemoryError) as error:
        return first_cause(error).partition(" ==> ")[0]
    return None


def _type_complaint(proto: onnx.ModelProto) -> str | None:
    try:
        shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError, MemoryError) as error:
        return first_cause(error)
    return None
