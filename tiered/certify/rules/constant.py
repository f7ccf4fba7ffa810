"""Operators that make constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.values import MOST_ELEMENTS, Unproved, numpy_dtype

Rule = Callable[[EvaluatedCall], Results]
_SCALARS: Final = {
    "value_float": np.float32,
    "value_int": np.int64,
    "value_floats": np.float32,
    "value_ints": np.int64,
    "value_string": np.object_,
    "value_strings": np.object_,
}


def constant(call: EvaluatedCall) -> Results:
    for name, dtype in _SCALARS.items():
        if name in call.attributes:
            numbers: Array = np.asarray(_decoded(call.attributes[name]), dtype)
            return [call.constant(numbers, _dtype(numbers))]
    tensor = call.get("value")
    if not isinstance(tensor, onnx.TensorProto):
        raise Unproved("a Constant that is no dense tensor of numbers")
    return [call.constant(onnx.numpy_helper.to_array(tensor), tensor.data_type)]


def constant_of_shape(call: EvaluatedCall) -> Results:
    sizes = call.operand(0).integers("the shape of ConstantOfShape")
    tensor = call.get("value")
    value = np.zeros(1, np.float32) if tensor is None else onnx.numpy_helper.to_array(tensor)
    dtype = onnx.TensorProto.FLOAT if tensor is None else tensor.data_type
    if min(sizes, default=0) < 0 or np.prod(sizes, dtype=float) > MOST_ELEMENTS:
        raise Unproved(f"ConstantOfShape of {sizes}")
    return [call.constant(np.broadcast_to(value.reshape(()), sizes), dtype)]


def range_(call: EvaluatedCall) -> Results:
    bounds = [call.operand(at) for at in range(3)]
    start, limit, delta = (x.numbers("a bound of Range").reshape(()) for x in bounds)
    if numpy_dtype(bounds[0].dtype).kind != "i" or delta == 0:
        from tiered.certify.evaluation.constants import run_node

        return run_node(call)
    if abs(float(limit) - float(start)) / abs(float(delta)) > MOST_ELEMENTS:
        raise Unproved("a Range of too many numbers")
    numbers = np.arange(int(start), int(limit), int(delta), dtype=start.dtype)
    return [call.constant(numbers, bounds[0].dtype)]


def _decoded(value: Any) -> Any:
    is_bytes = isinstance(value, list) and value and isinstance(value[0], bytes)
    return [text.decode("utf-8", "surrogateescape") for text in value] if is_bytes else value


def _dtype(numbers: Array) -> int:
    if numbers.dtype == np.object_:
        return int(onnx.TensorProto.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(numbers.dtype))


CONSTANTS: Final[dict[str, Rule]] = {
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
}
