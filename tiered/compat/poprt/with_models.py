"""The passes of PopRT that compare with another model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import onnx

import tiered
from tiered.context import PassContext
from tiered.extensions.debug import compare_models, layer_precision_compare as compare_layers
from tiered.graph import Model
from tiered.support.errors import UsageError
from tiered.support.whole_files import write_json


def check_with_fake_data(origin_model: onnx.ModelProto | str, **allowed: Any) -> tiered.Pass:
    """Return a pass that compares outputs with those of a model; `allowed` as `compare_models`."""

    @tiered.module_pass(opt_level=None, analysis=True, name="check_with_fake_data")
    def check(model: Model, ctx: PassContext) -> None:
        compare_models(origin_model, model.to_proto(), **allowed).raise_if_different()

    return check


def layer_precision_compare(
    origin_model: onnx.ModelProto | str,
    data_preprocess: str | Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    output_dir: str = "./",
) -> tiered.Pass:
    """Return a pass that compares the outputs of Conv, Gemm and MatMul with those of a model.

    Args:
        origin_model: the model to compare with, or its file.
        data_preprocess: the inputs: arrays by name, or a .npz file. A pickle is refused.
        options: `operators`, the operators to compare, or one; what else
            `layer_precision_compare` takes.
        output_dir: the folder for `layer_precision.json`: the difference of each layer, and
            1 - cosine, as PopRT has it.
    """
    if isinstance(data_preprocess, str) and not data_preprocess.endswith((".npz", ".npy")):
        raise UsageError(
            f"layer_precision_compare reads inputs from a .npz file, not from {data_preprocess!r}: "
            "to load a pickle runs code"
        )
    settings = dict(options or {})
    operators = settings.pop("operators", ("Conv", "Gemm", "MatMul"))
    kept = {operators} if isinstance(operators, str) else set(operators)
    inputs = [] if data_preprocess is None else [data_preprocess]

    @tiered.module_pass(opt_level=None, analysis=True, name="layer_precision_compare")
    def compare(model: Model, ctx: PassContext) -> None:
        found = compare_layers(
            origin_model, model.to_proto(),
            **{"inputs": inputs, "every": True, "numerics": "approximate", **settings},
        )  # fmt: skip
        kinds = _operators(origin_model)
        rows = [layer for layer in found.layers if kinds.get(layer.first) in kept]
        for layer in rows:
            ctx.remark(f"{kinds[layer.first]} {layer.second}: {layer}")
        os.makedirs(output_dir, exist_ok=True)
        record = [
            {
                "layer": layer.second,
                "operator": kinds[layer.first],
                "max_abs": layer.row.difference.max_abs,
                "cosine": None if (same := layer.row.difference.cosine) is None else 1 - same,
            }
            for layer in rows
        ]
        write_json(os.path.join(output_dir, "layer_precision.json"), record)

    return compare


def _operators(model: onnx.ModelProto | str) -> dict[str, str]:
    """Return the operator of each tensor: a Cast behind it may have its name in another model."""
    proto = onnx.load(model, load_external_data=False) if isinstance(model, str) else model
    return {name: node.op_type for node in proto.graph.node for name in node.output}


WITH_MODELS: Final[dict[str, Callable[..., tiered.Pass]]] = {
    "check_with_fake_data": check_with_fake_data,
    "layer_precision_compare": layer_precision_compare,
}
