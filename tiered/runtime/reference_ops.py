"""Operators for which onnx.reference does not follow the standard, but the processor or Python.

Imported only where a model is opened there: few runs need onnx.reference.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_25
from onnx.reference.ops.op_max_pool import MaxPool as OnnxMaxPool
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_25
from onnx.reference.ops.op_slice import Slice_10

from tiered.graph.core.dtypes import integer_info, is_float


class QuantizeLinear(QuantizeLinear_25):
    """Saturates +Inf, which onnx.reference converts to the least int32."""

    def _run(self, *operands: Any, **attributes: Any) -> tuple[Any]:
        (quantized,) = super()._run(*operands, **attributes)
        if is_float(quantized.dtype):
            return (quantized,)
        largest = quantized.dtype.type(integer_info(quantized.dtype).max)
        return (np.where(np.isposinf(operands[0]), largest, quantized),)


class Slice(Slice_10):
    """Clamps the start of a negative step to the data, as the standard does and numpy does not."""

    def _run(self, data: Any, *operands: Any, **attributes: Any) -> tuple[Any]:
        if not operands:  # They are attributes before opset 10, which has no steps.
            given = vars(self) | attributes
            operands = tuple(given.get(name) for name in ("starts", "ends", "axes"))
        starts, ends, axes, steps = (*operands, None, None)[:4]
        if steps is not None:
            places = range(len(steps)) if axes is None else axes
            sizes = np.array([data.shape[int(axis)] for axis in places], np.int64)
            starts = np.where(steps < 0, np.maximum(starts, -sizes), starts)
        run: Any = super()._run
        return (*run(data, starts, ends, axes, steps),)


class DequantizeLinear(DequantizeLinear_25):
    """The operator before opset 19, which onnx.reference lacks."""


class GatherElements(OpRun):
    """Takes any number of elements; onnx.reference at most 64."""

    def _run(self, data: Any, indices: Any, *, axis: int | None = None) -> tuple[Any]:
        axis = (axis or 0) % data.ndim
        kept = (slice(size) for size in indices.shape)
        rows = tuple(slice(None) if at == axis else each for at, each in enumerate(kept))
        return (np.take_along_axis(data[rows], indices, axis),)


class MaxPool(OnnxMaxPool):
    """Returns NaN for a window with NaN, as Max does; onnx.reference takes it for padding."""

    def _run(self, *operands: Any, **attributes: Any) -> tuple[Any, ...]:
        (x,), run = operands, cast("Any", super()._run)
        is_nan = np.isnan(x) if is_float(x.dtype) else np.zeros(x.shape, bool)
        if not is_nan.any():
            return (*run(x, **attributes),)
        largest, *places = run(np.where(is_nan, x.dtype.type(-np.inf), x), **attributes)
        has_nan = run(is_nan.astype(x.dtype), **attributes)[0] > 0
        return (np.where(has_nan, x.dtype.type(np.nan), largest), *places)


OPERATORS: list[type[OpRun]] = [DequantizeLinear, GatherElements, MaxPool, QuantizeLinear, Slice]
"""The `new_ops` of `ReferenceEvaluator`."""
