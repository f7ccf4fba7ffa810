"""A copy of a model that has its types and no weights: what shape inference needs."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tiered.errors import ModelError

if TYPE_CHECKING:
    import onnx

_KEPT = 1024  # elements of an initializer that shape inference may read
_MAX_INLINED = 20_000  # nodes; a nest of functions can be exponentially larger than its text


def bound_skeleton(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]
) -> onnx.ModelProto:
    """Return the model with inputs of the given shapes, functions inlined and shapes inferred.

    Initializers above 1,024 elements become typed inputs. Functions stay calls where inlining
    would take more than 20,000 nodes, and shapes stay unknown where inference fails: the callers
    then know less about the inputs, and nothing else happens.
    """
    from onnx import checker, inliner, shape_inference

    # What the two raise on models that they cannot handle, which is no fault of ours or theirs.
    refusals = (
        shape_inference.InferenceError,
        checker.ValidationError,
        protobuf_error(),
        RuntimeError,
        ValueError,
    )
    skeleton = _without_weights(model)
    for value in skeleton.graph.input:
        if value.name in shapes:
            shape = value.type.tensor_type.shape
            shape.ClearField("dim")
            for size in shapes[value.name]:
                shape.dim.add().dim_value = size
    if skeleton.functions and _inlined_size(skeleton) <= _MAX_INLINED:
        with contextlib.suppress(*refusals):
            skeleton = inliner.inline_local_functions(skeleton)
    else:
        # Inference would follow each call too, and take as long as the nest is large.
        skeleton.ClearField("functions")
    with contextlib.suppress(*refusals):
        bounded = _propagates_little(skeleton)
        skeleton = shape_inference.infer_shapes(skeleton, data_prop=bounded)
    return skeleton


def _propagates_little(skeleton: onnx.ModelProto) -> bool:
    """Tell whether the values that onnx computes as it infers stay small; no, if it is no graph."""
    from tiered.graph import Model
    from tiered.graph.inference import propagation_is_bounded

    try:
        return propagation_is_bounded(Model.from_proto(skeleton))
    except ModelError:
        return False


def protobuf_error() -> type[Exception]:
    """Return the base of what protobuf raises; its modules carry no types to import it by."""
    error: type[Exception] = importlib.import_module("google.protobuf.message").Error
    return error


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnx

    skeleton = onnx.ModelProto(ir_version=model.ir_version)
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    graph = skeleton.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    inputs = {i.name for i in model.graph.input}
    for tensor in model.graph.initializer:
        if int(np.prod(tensor.dims)) <= _KEPT and tensor.data_location != tensor.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return skeleton


def _inlined_size(model: onnx.ModelProto) -> float:
    """Return how many nodes the model has with all functions inlined; infinite if recursive."""
    bodies = {(f.domain, f.name, f.overload): f for f in model.functions}
    sizes: dict[tuple[str, str, str], float] = {}

    def size(nodes: Iterable[onnx.NodeProto]) -> float:
        total = 0.0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            if key in bodies:
                if key not in sizes:
                    sizes[key] = float("inf")  # until known: recursion never ends
                    sizes[key] = size(bodies[key].node)
                total += sizes[key]
            total += 1
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    total += size(attribute.g.node)
        return total

    return size(model.graph.node)
