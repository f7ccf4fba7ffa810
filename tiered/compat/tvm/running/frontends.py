"""`relay.frontend`: `from_onnx`, and what to do with models of other formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np
import onnx

from tiered.compat.tvm.running.built import Built
from tiered.compat.tvm.running.modules import IRModule
from tiered.graph import Model
from tiered.support.errors import UsageError

__all__ = ["from_onnx"]

_EXPORTS: Final = {
    "from_tflite": "`python -m tf2onnx.convert --tflite model.tflite --output model.onnx`",
    "from_tensorflow": "`python -m tf2onnx.convert --graphdef model.pb --output model.onnx`",
    "from_keras": "tf2onnx.convert.from_keras(model, output_path='model.onnx')",
    "from_pytorch": "torch.onnx.export(model, inputs, 'model.onnx', dynamo=True)",
    "from_paddle": "paddle.onnx.export(layer, 'model', input_spec=...)",
    "from_mxnet": "mx.onnx.export_model(...)",
    "from_coreml": "the framework that the model is from, which exports ONNX",
    "from_caffe": "the framework that the model is from, which exports ONNX",
    "from_caffe2": "the framework that the model is from, which exports ONNX",
    "from_darknet": "the framework that the model is from, which exports ONNX",
    "from_oneflow": "the framework that the model is from, which exports ONNX",
}
"""What makes an ONNX model of one of another format, by the name of TVM's function."""


def from_onnx(
    model: onnx.ModelProto,
    shape: Mapping[str, Any] | None = None,
    dtype: Any = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
) -> tuple[IRModule, dict[str, np.ndarray[Any, Any]]]:
    """Return a view of a copy of a model, and its parameters.

    Args:
        model: it stays.
        shape: the shapes of inputs, by name.
        dtype: accepted, and without effect: inputs have dtypes.
        opset: accepted, and without effect: a model has its opset.
        freeze_params: whether the weights are the model's only; else they are returned too.

    Raises:
        UsageError: the model has no such input, or cannot have such a shape.
    """
    view = Model.from_proto(model)
    if shape:
        view.set_input_shapes({name: list(dims) for name, dims in shape.items()})
    return IRModule.of(view), {} if freeze_params else Built(view).get_params()


def __getattr__(name: str) -> Callable[..., NoReturn]:
    """Return a function that says how a model of another format becomes ONNX.

    Raises:
        AttributeError: TVM reads no such format.
    """
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise UsageError(
            f"{name} has no equivalent: models are ONNX here. Make one first by {_EXPORTS[name]}, "
            "then relay.frontend.from_onnx(onnx.load('model.onnx'))"
        )

    refuse.__name__ = name
    return refuse
