"""Reductions, pools and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiered.graph.intervals.interval import (
    ZERO,
    Interval,
    absolute,
    hull,
    is_integer,
    square,
    sum_error,
    total,
    whole,
)
from tiered.graph.intervals.rules.range_rule import Counts, RangeCall, range_rule


def _count(call: RangeCall) -> Counts:
    node, x = call.node, call.node.given(0)
    axes = node.operand("axes")
    if axes is not None:
        if axes.const is None:
            return Counts(min(call.dims.least, 1), max(call.extent(x).most, 1))
        if axes.const.size:
            return call.extent(x, axes.const.ravel().tolist())
    return Counts(1, 1) if node.attr("noop_with_empty_axes", 0) else call.extent(x)


def _mean(call: RangeCall, count: Counts) -> Interval:
    """Return the means of `count` elements; their sum may overflow."""
    x = call.x
    if is_integer(call.dtype):
        every, sums = whole(call.dtype), total(x, count.least, count.most, 0.0)
        inside = every.low <= sums.low and sums.high <= every.high and count.least > 0
        return x if inside else every
    sums = call.total(x, count)
    if sums.low < -call.limit or sums.high > call.limit:
        return sums.with_nan(count.least == 0)
    error = (4 * call.eps + sum_error(count.most, call.eps)) * x.magnitude
    low = x.low - error
    return Interval(
        max(low, 0.0) if x.low >= 0 else low,
        x.high + error,
        sums.may_be_nan or count.least == 0,
    )


@range_rule("ReduceMean", "GlobalAveragePool")
def _means(call: RangeCall) -> Interval:
    return _mean(call, _pooled(call) if call.node.op_type != "ReduceMean" else _count(call))


def _pooled(call: RangeCall) -> Counts:
    return call.extent(call.node.given(0), slice(2, None))


@range_rule("ReduceSum")
def _sum(call: RangeCall) -> Interval:
    return call.total(call.x, _count(call))


@range_rule("ReduceSumSquare")
def _sum_of_squares(call: RangeCall) -> Interval:
    return call.total(square(call.x), _count(call))


@range_rule("ReduceL1")
def _l1(call: RangeCall) -> Interval:
    return call.total(absolute(call.x), _count(call))


@range_rule("ReduceL2")
def _l2(call: RangeCall) -> Interval:
    if is_integer(call.dtype):
        return whole(call.dtype)
    squares = call.total(square(call.x), _count(call))
    if squares.high > call.limit:
        return Interval(0.0, math.inf, squares.may_be_nan)
    return call.roughly(Interval(0.0, math.sqrt(squares.high), squares.may_be_nan))


@range_rule("ReduceMax", "ReduceMin", "GlobalMaxPool")
def _extreme(call: RangeCall) -> Interval:
    count = _pooled(call) if call.node.op_type == "GlobalMaxPool" else _count(call)
    return call.x if count.least > 0 and not call.x.may_be_nan else whole(call.dtype)


@range_rule("ReduceProd")
def _product(call: RangeCall) -> Interval:
    x, count = call.x, _count(call)
    if not x.is_finite or count.most > _LARGEST_COUNT:
        return whole(call.dtype)
    most = max(float(x.magnitude), 1.0) ** count.most if x.magnitude < _LARGEST_FACTOR else math.inf
    if most > 1 << 62:
        return whole(call.dtype)
    if is_integer(call.dtype):
        exact = max(int(x.magnitude), 1) ** count.most
        return Interval(0 if x.low >= 0 else -exact, exact)
    return call.roughly(Interval(0.0 if x.low >= 0 else -most, most))


_LARGEST_COUNT = 64
_LARGEST_FACTOR = 1 << 15


@range_rule("CumSum")
def _running_sum(call: RangeCall) -> Interval:
    x, axis = call.node.given(0), call.node.const(1)
    count = call.extent(x) if axis is None else call.extent(x, axis.ravel().tolist())
    return call.total(call.x, Counts(0, count.most))


@range_rule("MaxPool")
def _max_pool(call: RangeCall) -> Sequence[Interval | None]:
    # A window of padding only has the lowest number, and kernels differ about NaN.
    node = call.node
    kernel, pads = node.attr("kernel_shape"), node.attr("pads", None) or [0]
    dilated = any(step != 1 for step in node.attr("dilations", None) or [1])
    if node.attr("ceil_mode", 0) or not call.x.is_finite or dilated or max(pads) >= min(kernel):
        return [whole(call.dtype), None]
    return [call.x, Interval(0, max(call.extent(node.given(0)).most - 1, 0))]


@range_rule("AveragePool")
def _average_pool(call: RangeCall) -> Interval:
    if call.node.attr("ceil_mode", 0):
        return whole(call.dtype)
    sizes = math.prod(call.node.attr("kernel_shape"))
    inner = call._replace(operands=[hull((call.x, ZERO))])
    return _mean(inner, Counts(1, sizes))
