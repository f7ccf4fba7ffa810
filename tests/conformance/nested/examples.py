"""The models that the tests of passes rewrite, as parts of larger models, also at other sizes."""

import random
from functools import cache
from itertools import chain

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

from docs.site.examples import rewrites_of
from docs.site.pass_pages import own_passes
from tests.conformance.judge import all_nodes
from tiered.passes import PassInfo
from tiered.runtime import make_inputs
from tiered.runtime.session import Session
from tiered.support.errors import ModelError, RuntimeFailure

_TRIES = 4


@cache
def pipeline_passes() -> tuple[PassInfo, ...]:
    """Return the passes that the default pipeline runs at one of its levels."""
    return tuple(
        info
        for info in own_passes()
        if not info.analysis and info.kind != "pipeline" and info.opt_level is not None
    )


@cache
def examples_of(info: PassInfo) -> tuple[ModelProto, ...]:
    """Return the models that a pass rewrites and that can be parts of others."""
    models = (example.before for example in rewrites_of(info))
    return tuple(model for model in models if _can_be_part(model))


def _can_be_part(model: ModelProto) -> bool:
    if model.functions or model.training_info or model.graph.quantization_annotation:
        return False
    if model.ir_version < 4 or model.graph.sparse_initializer or runs(model) is None:
        return False
    inputs = chain(model.graph.input, model.graph.output)
    return all(info.type.WhichOneof("value") == "tensor_type" for info in inputs) and not any(
        node.op_type.startswith("Random") for node in all_nodes(model)
    )


def runs(model: ModelProto) -> Session | None:
    """Return the model opened, if onnxruntime runs it on generated inputs."""
    try:
        session = Session(model)
        session.run(make_inputs(model).feeds)
    except (ModelError, RuntimeFailure):
        return None
    return session


def at_other_size(source: random.Random, model: ModelProto) -> ModelProto:
    """Return a model with one size twice as large wherever it is, or as it was if none runs.

    Sizes and places are among the integer constants: all, some or none of them follow.
    """
    sizes = {
        dim.dim_value
        for info in model.graph.input
        for dim in info.type.tensor_type.shape.dim
        if dim.dim_value > 1
    }
    if not sizes:
        return model
    for _ in range(_TRIES):
        size = source.choice(sorted(sizes))
        made = ModelProto()
        made.CopyFrom(model)
        _double(source, made.graph, size)
        try:
            made = onnx.shape_inference.infer_shapes(made)
            onnx.checker.check_model(made, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            continue
        del made.graph.value_info[:]
        if runs(made) is not None:
            return made
    return model


def _double(source: random.Random, graph: GraphProto, size: int) -> None:
    for info in graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_value == size:
                dim.dim_value = 2 * size
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    del graph.value_info[:]
    share = source.choice((0.0, 0.5, 1.0))
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.data_type == TensorProto.INT64:
            follows = source.random() < share
            array = np.where(np.abs(array) < 1 << 40, array * 2, array) if follows else array
        for axis in [axis for axis, dim in enumerate(array.shape) if dim == size]:
            if tensor.data_type != TensorProto.INT64:
                array = np.concatenate([array, array], axis)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
