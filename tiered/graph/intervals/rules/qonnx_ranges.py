"""Quantisers of QONNX: integers of some bits, times a scale."""

from __future__ import annotations

import math

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.node import Node
from tiered.graph.intervals.integer_type import limits_of
from tiered.graph.intervals.interval import (
    ANY,
    Interval,
    add,
    clamp,
    divide,
    multiply,
    negative,
    widened,
)
from tiered.graph.intervals.rules.range_rule import RangeCall, range_rule

QONNX_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas")

_MOST_BITS = 64
_LOG_ERROR = 1e-3


def quantized_integers(call: RangeCall) -> Interval | None:
    """Return the integers that a quantiser multiplies by its scale; None if they are not known.

    They include the zero point, as `Quant` rounds to them before it subtracts it.
    """
    node = call.node
    key = (node.op_type, len(node.inputs))
    if any(value is None or value.dtype != DataType.FLOAT for value in node.inputs):
        return None
    if key == ("BipolarQuant", 2):
        return Interval(-1, 1)
    if key == ("Quant", 4):
        bits = _bits(call, 3)
        if bits is None:
            return None
        if bits == 1 and node.attr("signed", True):
            return Interval(-1, 1)
        found = _rounded(_shifted(call))
        return _limited(node, found, bits, default_narrow=1)
    if key == ("Trunc", 5):
        before, after = _bits(call, 3), _bits(call, 4)
        if before is None or after is None:
            return None
        step = 2.0 ** (before - after)
        return _rounded(divide(_rounded(_shifted(call)), Interval(step, step)))
    bits = _bits(call, 6) if key == ("Trunc", 7) else None
    return None if bits is None else _limited(node, ANY, bits, default_narrow=0)


@range_rule("BipolarQuant", "Quant", "Trunc", domain=QONNX_DOMAINS)
def _quantized(call: RangeCall) -> Interval:
    found = quantized_integers(call)
    if found is None:
        return ANY
    if call.node.op_type == "BipolarQuant":
        return call.roughly(multiply(Interval(-1, 1), call.operand(1)))
    scale, zero = call.operand(1), call.operand(2)
    if len(call.node.inputs) == 7:
        zero, scale = divide(zero, _steps(divide(call.operand(4), scale))), call.operand(4)
    result = multiply(add(found, negative(zero)), scale)
    return call.roughly(widened(result, 64 * call.eps, 64 * call.eps * result.magnitude))


@range_rule("MultiThreshold", domain=QONNX_DOMAINS)
def _counted(call: RangeCall) -> Interval:
    thresholds = call.node.input(1)
    most = call.size(None if thresholds is None else thresholds.dim(-1)).most
    attributes = (("out_scale", 1.0), ("out_bias", 0.0))
    scale, bias = (float(call.node.attr(name, default)) for name, default in attributes)
    found = add(multiply(Interval(0, most), Interval(scale, scale)), Interval(bias, bias))
    return call.roughly(found)


def _bits(call: RangeCall, place: int) -> int | None:
    bits = call.operand(place)
    is_number = bits.low == bits.high and not bits.may_be_nan and 1 <= bits.low <= _MOST_BITS
    return int(bits.low) if is_number and bits.low == int(bits.low) else None


def _shifted(call: RangeCall) -> Interval:
    """Return the numbers over the scale plus the zero point, with the errors of both steps."""
    found = add(divide(call.x, call.operand(1)), call.operand(2))
    return widened(found, 4 * call.eps, 4 * call.eps * call.operand(2).magnitude)


def _steps(ratio: Interval) -> Interval:
    """Return the powers of two that are nearest to the ratios of two scales."""
    if not (ratio.low > 0 and ratio.high < math.inf):
        return ANY
    # Halfway between two powers, errors of a logarithm decide.
    low, high = math.log2(ratio.low) - _LOG_ERROR, math.log2(ratio.high) + _LOG_ERROR
    return Interval(2.0 ** round(low), 2.0 ** round(high), ratio.may_be_nan)


def _rounded(found: Interval) -> Interval:
    """Return the integers to which any rounding mode may round."""
    low = math.floor(found.low) if math.isfinite(found.low) else found.low
    high = math.ceil(found.high) if math.isfinite(found.high) else found.high
    return Interval(low, high, found.may_be_nan)


def _limited(node: Node, found: Interval, bits: int, *, default_narrow: int) -> Interval:
    signed, narrow = bool(node.attr("signed", True)), bool(node.attr("narrow", default_narrow))
    low, high = limits_of(bits, signed=signed, narrow=narrow)
    return clamp(found, low, high)
