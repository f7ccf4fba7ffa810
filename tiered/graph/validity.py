"""Validity by onnx.checker, without the weights: what the passes could have broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import onnx
from onnx import checker

from tiered.errors import ModelError
from tiered.graph.export import export_model
from tiered.graph.save import tensors_of
from tiered.graph.stored import is_stored

if TYPE_CHECKING:
    from tiered.graph.model import Model

_SMALL: Final = 1024
"""Initializers up to this many elements are checked too; the others are as they were loaded."""


def check_model(model: Model) -> None:
    """Hold a model against onnx.checker.

    Raises:
        ModelError: the checker rejects it, and did not reject what was loaded.
    """
    complaint = _complaint(_checkable(model))
    if complaint is None:
        return
    if model.origin is not None:
        loaded = type(model).from_proto(model.origin, folder=model.folder)
        before = _complaint(_checkable(loaded))
        if before is not None:
            model.note(f"onnx.checker rejects the model as it was loaded: {before}")
            return
    raise ModelError(f"onnx.checker rejects the result: {complaint}")


def complaint_about(model: Model) -> str | None:
    """Return what onnx has against a model as it was loaded; None if it has nothing."""
    if model.origin is None:
        return None
    if model.complaint is None:
        model.complaint = (_complaint_about_loaded(model, model.origin),)
    return model.complaint[0]


def _complaint_about_loaded(model: Model, origin: onnx.ModelProto) -> str | None:
    loaded = type(model).from_proto(origin, folder=model.folder)
    complaint = _complaint(_checkable(loaded))
    if complaint is None:
        proto = export_model(loaded, max_elements=_SMALL)
        try:
            onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
        except onnx.shape_inference.InferenceError as error:
            complaint = " ".join(str(error).split())
    return complaint


def _checkable(model: Model) -> onnx.ModelProto:
    """Return a model without its weights."""
    proto = export_model(model, max_elements=_SMALL)
    for tensor in tensors_of(proto) if model.has_stored_constants else ():
        if is_stored(tensor):  # the checker looks for data wherever there are elements
            tensor.CopyFrom(onnx.TensorProto(data_type=tensor.data_type, dims=[0]))
    return proto


def _complaint(proto: onnx.ModelProto) -> str | None:
    try:
        checker.check_model(proto)
    except (checker.ValidationError, ValueError, RuntimeError) as error:
        return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return None
