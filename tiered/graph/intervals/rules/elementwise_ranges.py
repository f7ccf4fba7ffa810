"""Elementwise operators of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.intervals.interval import (
    ZERO,
    Interval,
    absolute,
    clamp,
    divide,
    hull,
    is_integer,
    multiply,
    negative,
    whole,
    widened,
)
from tiered.graph.intervals.rules.range_rule import RangeCall, range_rule

Number = Callable[[float], float]


def _at(function: Number, number: float) -> float:
    """Return a function of a number, infinite where it overflows."""
    with np.errstate(all="ignore"):
        return float(function(np.float64(number)))


def _increasing(call: RangeCall, function: Number) -> Interval:
    x = call.x
    return call.roughly(Interval(_at(function, x.low), _at(function, x.high), x.may_be_nan))


def _sigmoid(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


def _softplus(x: float) -> float:
    return float(np.logaddexp(0.0, x))


def _erf(x: float) -> float:
    return math.erf(x)


_INCREASING: Final[dict[str, Number]] = {
    "Asinh": np.arcsinh, "Atan": np.arctan, "Erf": _erf, "Exp": np.exp, "Sigmoid": _sigmoid,
    "Sinh": np.sinh, "Softplus": _softplus, "Tanh": np.tanh,
}  # fmt: skip

_POSITIVE: Final = frozenset({"Exp", "Sigmoid", "Softplus"})


@range_rule(*_INCREASING)
def _of_increasing(call: RangeCall) -> Interval:
    found = _increasing(call, _INCREASING[call.node.op_type])
    if call.node.op_type in _POSITIVE:
        return Interval(max(found.low, 0.0), found.high, found.may_be_nan)
    return found


@range_rule("Ceil", "Floor", "Round")
def _rounded(call: RangeCall) -> Interval:
    function = {"Ceil": np.ceil, "Floor": np.floor, "Round": np.rint}[call.node.op_type]
    x = call.x
    return Interval(_at(function, x.low), _at(function, x.high), x.may_be_nan)


@range_rule("Neg")
def _neg(call: RangeCall) -> Interval:
    return negative(call.x)


@range_rule("Abs")
def _abs(call: RangeCall) -> Interval:
    return absolute(call.x)


@range_rule("Sign")
def _sign(call: RangeCall) -> Interval:
    # Of NaN, kernels return 0 or NaN.
    signs = [(bound > 0) - (bound < 0) for bound in (call.x.low, call.x.high)]
    found = Interval(signs[0], signs[1], call.x.may_be_nan)
    return hull((found, ZERO)) if found.may_be_nan else found


@range_rule("Cos", "Sin")
def _wave(call: RangeCall) -> Interval:
    return call.roughly(Interval(-1.0, 1.0, call.x.may_be_nan or call.x.may_be_inf))


@range_rule("Acos", "Asin", "Atanh")
def _inside_one(call: RangeCall) -> Interval:
    is_nan = not call.x.is_within(-1, 1)
    if call.node.op_type == "Atanh":
        return Interval(-math.inf, math.inf, is_nan)
    low, high = (0.0, math.pi) if call.node.op_type == "Acos" else (-math.pi / 2, math.pi / 2)
    return call.roughly(Interval(low, high, is_nan))


@range_rule("Acosh")
def _acosh(call: RangeCall) -> Interval:
    high = _at(np.arccosh, call.x.high) if call.x.high >= 1 else 0.0
    return call.roughly(Interval(0.0, high, call.x.may_be_nan or call.x.low < 1))


@range_rule("Cosh")
def _cosh(call: RangeCall) -> Interval:
    x = absolute(call.x)
    return call.roughly(Interval(_at(np.cosh, x.low), _at(np.cosh, x.high), x.may_be_nan))


@range_rule("Log")
def _log(call: RangeCall) -> Interval:
    x = call.x
    low = _at(np.log, x.low) if x.low > 0 else -math.inf
    high = _at(np.log, x.high) if x.high > 0 else -math.inf
    return call.roughly(Interval(low, high, x.may_be_nan or x.low < 0))


@range_rule("Sqrt")
def _sqrt(call: RangeCall) -> Interval:
    x = clamp(call.x, 0, math.inf)
    found = Interval(math.sqrt(x.low), math.sqrt(x.high), x.may_be_nan or call.x.low < 0)
    return widened(found, 2 * call.eps)


@range_rule("Reciprocal")
def _reciprocal(call: RangeCall) -> Interval:
    return widened(divide(Interval(1.0, 1.0), call.x), 2 * call.eps)


@range_rule("Relu")
def _relu(call: RangeCall) -> Interval:
    # Of NaN, kernels return 0 or NaN.
    found = clamp(call.x, 0, math.inf)
    return hull((found, ZERO)) if found.may_be_nan else found


@range_rule("Clip")
def _clip(call: RangeCall) -> Interval:
    # Where there is no bound, kernels limit Inf to the largest number, or do not.
    every = whole(call.dtype)
    least = Interval(every.low, max(every.low, -call.limit))
    most = Interval(min(every.high, call.limit), every.high)
    low, high = call.node.attr("min", None), call.node.attr("max", None)  # before opset 11
    least = least if low is None else Interval(float(low), float(low))
    most = most if high is None else Interval(float(high), float(high))
    if call.has(1):
        least = call.operand(1)
    if call.has(2):
        most = call.operand(2)
    x = call.x
    found = Interval(
        min(max(x.low, least.low), most.low),
        min(max(x.high, least.high), most.high),
        x.may_be_nan or least.may_be_nan or most.may_be_nan,
    )
    # A bound that is NaN may limit nothing.
    if least.may_be_nan or most.may_be_nan:
        return hull((found, least, most, x))
    # Of NaN, kernels return a bound or NaN; of crossed bounds, either.
    if found.may_be_nan or least.high > most.low:
        return hull((found, least, most))
    return found


@range_rule("LeakyRelu", "PRelu", "ThresholdedRelu", "Shrink")
def _of_pieces(call: RangeCall) -> Interval:
    """Each piece is linear: the identity, 0, or a multiple."""
    x, op_type = call.x, call.node.op_type
    if op_type == "ThresholdedRelu":
        return hull((x, ZERO))
    if op_type == "Shrink":
        bias = abs(float(call.node.attr("bias")))
        return hull((widened(x, call.eps, bias), ZERO))
    alpha = float(call.node.attr("alpha")) if op_type == "LeakyRelu" else 0.0
    slope = Interval(alpha, alpha) if op_type == "LeakyRelu" else call.operand(1)
    return hull((x, multiply(x, slope), ZERO))


@range_rule("Celu", "Elu", "Selu")
def _exponential_unit(call: RangeCall) -> Interval:
    node, x = call.node, call.x
    alpha = abs(float(node.attr("alpha")))
    gamma = float(node.attr("gamma")) if node.op_type == "Selu" else 1.0
    unit = hull((x, ZERO))
    low = max(unit.low, -alpha) if node.op_type == "Celu" else -alpha
    found = Interval(min(low, -alpha), unit.high, unit.may_be_nan)
    return call.roughly(multiply(found, Interval(gamma, gamma)))


@range_rule("HardSigmoid")
def _hard_sigmoid(call: RangeCall) -> Interval:
    return call.roughly(Interval(0.0, 1.0, call.x.may_be_nan or call.x.may_be_inf))


@range_rule("Softsign")
def _softsign(call: RangeCall) -> Interval:
    return call.roughly(Interval(-1.0, 1.0, call.x.may_be_nan or call.x.may_be_inf))


_LEAST_OF_GATED: Final = {"Gelu": -0.171, "HardSwish": -0.376, "Mish": -0.309}


@range_rule("Gelu", "HardSwish", "Mish", "Swish")
def _gated(call: RangeCall) -> Interval:
    """Return x times a number from 0 to 1, which is 0 for -Inf."""
    x = call.x
    least = _LEAST_OF_GATED.get(call.node.op_type)
    if least is None:
        alpha = float(call.node.attr("alpha"))
        if alpha <= 0:
            return hull((x, ZERO)).with_nan(x.may_be_inf)
        least = -0.279 / alpha
    # A function that is not quite 0 matters where x is large.
    error = 64 * call.eps * abs(x.low) if math.isfinite(x.low) else math.inf
    low = max(min(least, x.high) - error, min(x.low, 0.0)) if x.low < 0 else 0.0
    found = Interval(low, max(x.high, 0.0), x.may_be_nan or x.low == -math.inf)
    return call.roughly(found)


@range_rule("Identity", "Dropout")
def _same(call: RangeCall) -> Interval:
    training = call.node.operand("training_mode") if call.node.op_type == "Dropout" else None
    return whole(call.dtype) if training is not None else call.x


@range_rule("Cast", "CastLike")
def _cast(call: RangeCall) -> Interval:
    dtype = call.dtype
    if dtype in (None, DataType.STRING):
        return whole(dtype)
    if dtype == DataType.BOOL:
        return Interval(0, 1)
    if not is_integer(dtype):
        return call.x
    # What does not fit is undefined.
    every = whole(dtype)
    if not call.x.is_within(every.low, every.high):
        return every
    return Interval(math.trunc(call.x.low), math.trunc(call.x.high))


@range_rule("BitwiseNot")
def _bitwise_not(call: RangeCall) -> Interval:
    every = whole(call.dtype)
    return Interval(every.low + every.high - call.x.high, every.low + every.high - call.x.low)


@range_rule(
    "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not",
    "Or", "Xor", "Bernoulli", "EyeLike", "Hardmax",
)  # fmt: skip
def _zero_or_one(call: RangeCall) -> Interval:
    return Interval(0, 1, call.node.op_type == "Hardmax" and call.x.may_be_nan)
