"""What people hold instead of a file: serialized bytes, an onnx_ir.Model, a torch ONNXProgram.

Each is read as a ModelProto, and the result is given back as what came in. The packages are not
imported before an object of theirs is there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
from google.protobuf.message import DecodeError

from tiered.support.amounts import counted
from tiered.support.errors import ModelError

_IR = "onnx_ir"


class Held(NamedTuple):
    """A model as a ModelProto.

    Attributes:
        proto: the model.
        folder: where its external data is; "" for the current folder.
        back: makes what the caller held of the result.
    """

    proto: onnx.ModelProto
    folder: str
    back: Callable[[onnx.ModelProto], Any]


def held(model: Any) -> Held | None:
    """Return a model that is neither a file nor a ModelProto; None if it is none either.

    Args:
        model: bytes, an `onnx_ir.Model`, or what has one as `model` and is made of it and of an
            `exported_program`: a `torch.onnx.ONNXProgram`.

    Raises:
        ModelError: the bytes are no ONNX model.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return Held(_parsed(bytes(model)), "", _serialized)
    if _is_ir(model):
        return _held_ir(model, lambda made: made)
    program = type(model)
    if program.__name__ == "ONNXProgram" and _is_ir(getattr(model, "model", None)):
        return _held_ir(model.model, lambda made: program(made, model.exported_program))
    return None


def _serialized(proto: onnx.ModelProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


def _parsed(data: bytes) -> onnx.ModelProto:
    try:
        proto = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        size = counted(len(data), "byte")
        raise ModelError(f"not an ONNX model: {size} that cannot be parsed") from error
    if not proto.ListFields():
        raise ModelError("the bytes are empty; expected an ONNX model")
    return proto


def _is_ir(model: Any) -> bool:
    kind = type(model)
    return kind.__name__ == "Model" and kind.__module__.partition(".")[0] == _IR


def _held_ir(model: Any, back: Callable[[Any], Any]) -> Held:
    """Return a model of onnx_ir; its external tensors stay in their files."""
    ir = importlib.import_module(_IR)
    folders = {
        str(value.const_value.base_dir)
        for value in model.graph.initializers.values()
        if isinstance(value.const_value, ir.ExternalTensor)
    }
    if len(folders) > 1:
        raise ModelError(
            f"the model has external data in {len(folders)} folders, and ONNX allows one: "
            f"{', '.join(sorted(folders))}"
        )
    folder = next(iter(folders), "")

    def made(proto: onnx.ModelProto) -> Any:
        result = ir.from_proto(proto)
        if folder:
            ir.external_data.set_base_dir(result.graph, folder)
        return back(result)

    return Held(ir.to_proto(model), folder, made)
