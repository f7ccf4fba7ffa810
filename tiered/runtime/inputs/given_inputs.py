"""A user's sample of a model: each input by its name, whole, of the declared dtype and dims.

What a sample lacks is an error that names it: a number drawn at random would be taken for the
user's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.support.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    import onnx

Given = dict[str, Any]
"""Arrays by the input's name; "#0" is the first input, "x.npy" is a file of one array."""

ONE_ARRAY = ".npy"
"""How a file of one array ends; of a model with one input it may have any name."""

_NUMBERS = "biufc"
"""The kinds of numpy's own dtypes of numbers."""


def placed(
    given: Given,
    inputs: Sequence[str],
    label: str,
    *,
    overridable: Collection[str] = (),
    may_lack: Collection[str] = (),
) -> Given:
    """Return the arrays of a sample by the names of the inputs.

    Args:
        given: the sample.
        inputs: the inputs of the model that have no default, in order.
        label: of the sample, in messages.
        overridable: the inputs that have a default.
        may_lack: inputs that the sample need not have.

    Raises:
        UsageError: the sample is empty, lacks an input, or has one that the model lacks.
    """
    there = f"it has {', '.join(inputs) or 'none'}"
    if not given and inputs:
        raise UsageError(f"{label}: the sample is empty; the model takes {', '.join(inputs)}")
    found: Given = {}
    for key, value in given.items():
        name = _name_of(key, inputs, overridable, is_alone=len(given) == 1)
        if name is None:
            hint = did_you_mean(key, [*inputs, *overridable]) or f"; {there}"
            raise UsageError(f"{label}: the model has no input {key!r}{hint}")
        found[name] = value
    missing = [name for name in inputs if name not in found and name not in may_lack]
    if missing:
        raise UsageError(
            f"{label}: the sample lacks the input{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing))}; give all inputs of the model ({', '.join(inputs)}), "
            "or no sample at all: then all are made"
        )
    return found


def _name_of(
    key: str, inputs: Sequence[str], overridable: Collection[str], *, is_alone: bool
) -> str | None:
    if key in inputs or key in overridable:
        return key
    if key.startswith("#") and key[1:].isdigit():
        return inputs[int(key[1:])] if int(key[1:]) < len(inputs) else None
    if not key.endswith(ONE_ARRAY):
        return None
    stem = key.removesuffix(ONE_ARRAY)
    if stem in inputs or stem in overridable:
        return stem
    return inputs[0] if is_alone and len(inputs) == 1 else None


def check_fits(infos: Iterable[onnx.ValueInfoProto], feeds: Given, label: str) -> None:
    """Check the dtypes and dims of the arrays of a sample against the declared inputs.

    Raises:
        UsageError: an array has another dtype or other dims than its input.
    """
    for value in infos:
        array, declared = feeds.get(value.name), value.type.tensor_type
        if not isinstance(array, np.ndarray) or not declared.elem_type:
            continue
        dtype = DataType(declared.elem_type).numpy
        dims = declared.shape.dim if declared.HasField("shape") else None
        is_other = dtype.kind in _NUMBERS and array.dtype.kind in _NUMBERS and array.dtype != dtype
        if is_other or not (dims is None or _has_dims(array, dims)):
            shape = "of any rank" if dims is None else f"[{', '.join(map(_said, dims))}]"
            raise UsageError(
                f"{label}: {value.name!r} is {array.dtype} {list(array.shape)}; the model takes "
                f"{dtype} {shape}"
            )


def _has_dims(array: np.ndarray[Any, Any], dims: Sequence[onnx.TensorShapeProto.Dimension]) -> bool:
    """Return whether an array has the dims that are numbers."""
    return len(dims) == array.ndim and all(
        dim.dim_value <= 0 or dim.dim_value == size
        for dim, size in zip(dims, array.shape, strict=True)
    )


def _said(dim: onnx.TensorShapeProto.Dimension) -> str:
    return str(dim.dim_value) if dim.dim_value > 0 else dim.dim_param or "?"
