"""Operators of which onnx.reference leaves to the processor what the standard says.

Imported only where a model is opened there: few runs need onnx.reference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_25

from tiered.runtime.dtypes import integer_info, is_float


class QuantizeLinear(QuantizeLinear_25):
    """Saturates +Inf, which onnx.reference converts to the least int32 on its way."""

    def _run(self, *operands: Any, **attributes: Any) -> tuple[Any]:
        (quantized,) = super()._run(*operands, **attributes)
        if is_float(quantized.dtype):
            return (quantized,)
        largest = quantized.dtype.type(integer_info(quantized.dtype).max)
        return (np.where(np.isposinf(operands[0]), largest, quantized),)


OPERATORS: list[type[OpRun]] = [QuantizeLinear]
"""What `ReferenceEvaluator` is given as its `new_ops`."""
