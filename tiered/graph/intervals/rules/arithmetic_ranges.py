"""Arithmetic of several tensors, which broadcast."""

from __future__ import annotations

import math
from functools import reduce

from tiered.graph.intervals.interval import (
    Interval,
    add,
    divide,
    hull,
    is_integer,
    multiply,
    negative,
    square,
    whole,
)
from tiered.graph.intervals.rules.range_rule import Counts, RangeCall, range_rule


def _operands(call: RangeCall) -> list[Interval]:
    return [each for each in call.operands if each is not None]


@range_rule("Add")
def _add(call: RangeCall) -> Interval:
    return add(call.x, call.operand(1))


@range_rule("Sub")
def _sub(call: RangeCall) -> Interval:
    return add(call.x, negative(call.operand(1)))


@range_rule("Mul")
def _mul(call: RangeCall) -> Interval:
    node = call.node
    return square(call.x) if node.input(0) is node.input(1) else multiply(call.x, call.operand(1))


@range_rule("Sum")
def _sum(call: RangeCall) -> Interval:
    terms = _operands(call)
    found = reduce(add, terms)
    bounds = call.total(hull(terms), Counts(len(terms), len(terms)))
    return Interval(min(found.low, bounds.low), max(found.high, bounds.high), bounds.may_be_nan)


@range_rule("Mean")
def _mean(call: RangeCall) -> Interval:
    terms = hull(_operands(call))
    bounds = call.total(terms, Counts(len(_operands(call)), len(_operands(call))))
    if bounds.low < -call.limit or bounds.high > call.limit:
        return bounds
    return call.roughly(terms)


@range_rule("Div")
def _div(call: RangeCall) -> Interval:
    a, b = call.x, call.operand(1)
    if not is_integer(call.dtype):
        return divide(a, b)
    parts = (Interval(b.low, min(b.high, -1)), Interval(max(b.low, 1), b.high))
    found = [_whole_quotients(a, part) for part in parts if part.low <= part.high]
    return hull(found) if found else whole(call.dtype)


def _whole_quotients(a: Interval, b: Interval) -> Interval:
    """Return the quotients of integers, rounded to either side."""
    pairs = [(int(x), int(y)) for x in (a.low, a.high) for y in (b.low, b.high)]
    quotients = [x // y for x, y in pairs] + [-(-x // y) for x, y in pairs]
    return Interval(min(quotients), max(quotients))


@range_rule("Mod")
def _mod(call: RangeCall) -> Interval:
    a, b = call.x, call.operand(1)
    is_nan = a.may_be_nan or b.may_be_nan or a.may_be_inf or b.has(0)
    if not is_integer(call.dtype):
        # A remainder has the sign of the dividend, and is not larger than either.
        most = min(a.magnitude, b.magnitude)
        return Interval(-most if a.low < 0 else 0.0, most if a.high > 0 else 0.0, is_nan)
    most = max(int(b.magnitude) - 1, 0)
    sign = a if call.node.attr("fmod") else b
    if a.low >= 0 and b.low >= 0:
        return Interval(0, min(most, a.high))
    return Interval(-most if sign.low < 0 else 0, most if sign.high > 0 else 0)


@range_rule("Pow")
def _pow(call: RangeCall) -> Interval:
    a, exponents = call.x, call.operand(1)
    exponent = exponents.low
    if exponents.low != exponents.high or exponents.may_be_nan or math.isinf(exponent):
        return whole(call.dtype)
    if exponent == 2:
        return _margin(call, square(a))
    if float(exponent).is_integer() and 0 <= exponent <= _LARGEST_POWER:
        # The power of 0 is 1 for NaN too.
        ends = [_power(bound, int(exponent)) for bound in (a.low, a.high)]
        low = 0 if exponent % 2 == 0 and a.has(0) and exponent else min(ends)
        return _margin(call, Interval(low, max(ends), a.may_be_nan and exponent > 0))
    if is_integer(call.dtype) or a.low <= 0:
        return whole(call.dtype)
    try:
        ends = [float(bound) ** float(exponent) for bound in (a.low, a.high)]
    except OverflowError:
        return whole(call.dtype)
    return _margin(call, Interval(min(ends), max(ends), a.may_be_nan))


_LARGEST_POWER = 16


def _power(number: float, exponent: int) -> float:
    try:
        return number**exponent
    except OverflowError:
        return math.inf if number > 0 or exponent % 2 == 0 else -math.inf


def _margin(call: RangeCall, found: Interval) -> Interval:
    """Return powers with a margin for the error of the kernel, which keeps their sign."""
    if is_integer(call.dtype):
        # Kernels compute in doubles.
        return found if found.magnitude < 1 << 53 else whole(call.dtype)
    wide = call.roughly(found)
    return Interval(max(wide.low, 0.0), wide.high, wide.may_be_nan) if found.low >= 0 else wide


@range_rule("Max", "Min")
def _extreme(call: RangeCall) -> Interval:
    found = _operands(call)
    choose = max if call.node.op_type == "Max" else min
    if any(each.may_be_nan for each in found):
        # Of NaN and a number, kernels return either.
        return hull(found)
    return Interval(choose(each.low for each in found), choose(each.high for each in found))


@range_rule("Where")
def _where(call: RangeCall) -> Interval:
    return hull((call.operand(1), call.operand(2)))


@range_rule("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bits(call: RangeCall) -> Interval:
    a, b = call.x, call.operand(1)
    if a.low < 0 or b.low < 0:
        return whole(call.dtype)
    if call.node.op_type == "BitwiseAnd":
        return Interval(0, min(a.high, b.high))
    bits = int(max(a.high, b.high)).bit_length()
    return Interval(0, (1 << bits) - 1)
