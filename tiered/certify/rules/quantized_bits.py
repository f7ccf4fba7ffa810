"""QuantizeLinear and DequantizeLinear on bits, also those of com.microsoft.

With numbers for scales and zero points, what a round trip of all integers gives is computed, not
assumed. Signed and unsigned integers of 8 bits, 128 apart, have terms of one another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array, flipped, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.constants import run_node
from tiered.certify.evaluation.forms import Clamp, Dequantized
from tiered.certify.evaluation.values import CheckedTensor, numpy_dtype
from tiered.certify.rules.bit_extrema import clamp_of, of_clamp
from tiered.graph.core.dtypes import integer_info

Rule = Callable[[EvaluatedCall], Results]
INT8, UINT8 = int(onnx.TensorProto.INT8), int(onnx.TensorProto.UINT8)
_INTEGERS: Final = frozenset(
    (INT8, UINT8, int(onnx.TensorProto.INT16), int(onnx.TensorProto.UINT16))
)


class Scales:
    """The scale and the zero point of a call, and how they are broadcast."""

    def __init__(self, call: EvaluatedCall, held: int) -> None:
        x, self.scale = call.operand(0), call.operand(1)
        if call.get("block_size", 0):
            raise NoRule
        given = call.operand(2) if call.has(2) else None
        is_list = self.scale.size != 1
        self.axis = axis_of(call.get("axis", 1), x.rank) if is_list else 0
        self.shape = [-1 if at == self.axis else 1 for at in range(x.rank)] if is_list else []
        self.zero = given or call.constant(np.zeros(self.scale.shape, numpy_dtype(held)), held)

    def numbers(self) -> tuple[Array, Array] | None:
        """Return them as numbers that broadcast; None if they are not known."""
        if self.scale.known is None or self.zero.known is None:
            return None
        return self.scale.known.reshape(self.shape), self.zero.known.reshape(self.shape)


def quantize(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    default = call.get("output_dtype", 0) or UINT8
    to = call.operand(2).dtype if call.has(2) else default
    scales = Scales(call, to)
    numbers = scales.numbers()
    if x.known is not None and numbers is not None:
        return run_node(call)
    if numbers is not None and to in _INTEGERS:
        held = x.form
        if isinstance(held, Dequantized) and _comes_back(held, to, scales.axis, *numbers):
            call.axioms.add("quantized-again")
            return [held.integers]
        if x.dtype == int(onnx.TensorProto.FLOAT):
            x = _without_bounds(call, x, to, *numbers)
    signed = to == INT8
    made_to = UINT8 if signed else to
    zero = unsigned(call, scales.zero)
    seed = seed_of("QuantizeLinear", made_to, x.dtype, call.get("saturate", 1))

    def make() -> Array:
        parts = (each.terms.reshape(scales.shape) for each in (scales.scale, zero))
        return np.broadcast_to(mix(seed, x.terms, *parts), x.shape)

    made = call.made(made_to, x.shape, make)
    return [call.made(INT8, x.shape, lambda: flipped(made.terms)) if signed else made]


def dequantize(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    scales = Scales(call, x.dtype)
    to = scales.scale.dtype
    if call.get("output_dtype", 0) not in (0, to):
        raise NoRule
    if x.known is not None and scales.numbers() is not None:
        return run_node(call)
    source, zero = unsigned(call, x), unsigned(call, scales.zero)
    seed = seed_of("DequantizeLinear", to)

    def make() -> Array:
        parts = (each.terms.reshape(scales.shape) for each in (scales.scale, zero))
        return np.broadcast_to(mix(seed, source.terms, *parts), x.shape)

    made = call.made(to, x.shape, make)
    numbers = scales.numbers()
    if numbers is not None and x.dtype in _INTEGERS and to == int(onnx.TensorProto.FLOAT):
        made.form = Dequantized(x, *numbers, scales.axis)
    return [made]


# --- signed and unsigned ------------------------------------------------------------------------


def unsigned(call: EvaluatedCall, x: CheckedTensor) -> CheckedTensor:
    """Return integers of 8 bits plus 128, if they are signed; others as they are."""
    if x.dtype != INT8:
        return x
    if x.known is not None:
        return call.constant((x.known.astype(np.int16) + 128).astype(np.uint8), UINT8)
    return call.made(UINT8, x.shape, lambda: flipped(x.terms))


# --- numbers that are known ---------------------------------------------------------------------


def rounded(x: Any, scale: Array, zero: Array) -> Array:
    """Return floats of 32 bits as integers by the definition, saturated in the zero point's dtype.

    The quotient is rounded to the float32, then to the nearest integer, to even ones of two.
    """
    limits = integer_info(zero.dtype)
    with np.errstate(all="ignore"):
        quotient = np.asarray(x, np.float32) / scale.astype(np.float32)
        whole = np.rint(quotient).astype(np.float64) + zero.astype(np.float64)
    return np.clip(whole, limits.min, limits.max)


def _comes_back(held: Dequantized, to: int, axis: int, scale: Array, zero: Array) -> bool:
    """Return whether every integer is itself after DequantizeLinear and QuantizeLinear."""
    if held.integers.dtype != to or axis != held.axis:
        return False
    if held.scale.size != scale.size or held.zero.size != zero.size:
        return False
    limits = integer_info(zero.dtype)
    every = np.arange(int(limits.min), int(limits.max) + 1)[:, None]
    one, other, at, last = (each.reshape(1, -1) for each in (held.scale, scale, held.zero, zero))
    with np.errstate(all="ignore"):
        there = (every - at.astype(np.int64)).astype(np.float32) * one.astype(np.float32)
        back = rounded(there, other, last)
    return bool((back == every).all())


def _without_bounds(
    call: EvaluatedCall, x: CheckedTensor, to: int, scale: Array, zero: Array
) -> CheckedTensor:
    """Return a clamp without the bounds beyond which all numbers are quantised alike."""
    if not isinstance(x.form, Clamp) or not ((scale > 0) & np.isfinite(scale)).all():
        return x
    limits, form = integer_info(numpy_dtype(to)), clamp_of(x)
    low, high = form.low, form.high
    if (rounded(low, scale, zero) == limits.min).all():
        low = np.asarray(-np.inf)
    if (rounded(high, scale, zero) == limits.max).all():
        high = np.asarray(np.inf)
    return of_clamp(call, Clamp(form.base, low, high), x.dtype, x.shape)


QUANTIZED: Final[dict[str, Rule]] = {
    "DequantizeLinear": dequantize,
    "QuantizeLinear": quantize,
    "com.microsoft::DequantizeLinear": dequantize,
    "com.microsoft::QuantizeLinear": quantize,
}
