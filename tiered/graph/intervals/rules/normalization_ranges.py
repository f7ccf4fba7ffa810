"""Normalisations, softmax and recurrent operators: their outputs are limited by definition.

A normalised number is a deviation from the mean in units of the standard deviation of its group:
of n numbers none deviates by more than sqrt(n - 1). Kernels that compute the variance as a
difference of means agree with it as long as the difference does not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiered.graph.intervals.interval import ZERO, Interval, add, hull, multiply, square, whole
from tiered.graph.intervals.rules.range_rule import Counts, RangeCall, range_rule


def _normalized(call: RangeCall, count: Counts) -> Interval:
    """Return the numbers of a group in units of its standard deviation."""
    most = math.sqrt(max(count.most, 1))
    squares = call.total(square(call.x), count)
    if not call.x.is_finite or squares.high > call.limit:
        # A variance that overflows makes 0 or NaN of the numbers, a mean that does makes Inf.
        return Interval(-math.inf, math.inf, True)
    return Interval(-most * 1.01, most * 1.01, False)


def _from(call: RangeCall, axis: int) -> Interval:
    """Return numbers that are normalised along the axes from one on, scaled and shifted."""
    found = _normalized(call, call.extent(call.node.given(0), slice(axis, None)))
    found = multiply(found, call.operand(1)) if call.has(1) else found
    return call.roughly(add(found, call.operand(2)) if call.has(2) else found)


@range_rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def _layer(call: RangeCall) -> Sequence[Interval | None]:
    return [_from(call, call.node.attr("axis", -1))]


@range_rule("MeanVarianceNormalization")
def _without_epsilon(call: RangeCall) -> Interval:
    """Return any number: a constant group may be 0 / 0."""
    return whole(call.dtype)


@range_rule("InstanceNormalization", "GroupNormalization")
def _per_channel(call: RangeCall) -> Interval:
    return _from(call, 2 if call.node.op_type == "InstanceNormalization" else 1)


@range_rule("BatchNormalization")
def _batch(call: RangeCall) -> Sequence[Interval | None]:
    if call.node.attr("training_mode", 0) or len(call.node.outputs) > 1:
        return [whole(call.dtype)]
    x, scale, bias, mean, variance = (call.operand(place) for place in range(5))
    epsilon = float(call.node.attr("epsilon"))
    if variance.low + epsilon <= 0 or not all(
        each.is_finite for each in (x, scale, bias, mean, variance)
    ):
        return [whole(call.dtype)]
    ends = (1 / math.sqrt(variance.low + epsilon), 1 / math.sqrt(variance.high + epsilon))
    factor = multiply(scale, Interval(min(ends), max(ends)))
    # Kernels multiply out, so that an error is relative to each term.
    terms = [multiply(x, factor), multiply(mean, factor), bias]
    found = add(add(terms[0], Interval(-terms[1].high, -terms[1].low)), bias)
    error = 16 * call.eps * sum(each.magnitude for each in terms)
    return [Interval(found.low - error, found.high + error)]


@range_rule("Softmax")
def _softmax(call: RangeCall) -> Interval:
    # A row of -Inf only is 0 / 0.
    found = call.roughly(Interval(0.0, 1.0, call.x.may_be_nan or call.x.may_be_inf))
    return Interval(0.0, found.high, found.may_be_nan)


@range_rule("LogSoftmax")
def _log_softmax(call: RangeCall) -> Interval:
    if not call.x.is_finite:
        return Interval(-math.inf, 64 * call.eps, True)
    spread = call.x.high - call.x.low
    low = -spread - math.log(max(call.extent(call.node.given(0)).most, 1))
    # A kernel may take the logarithm of what underflowed.
    low = low if spread < _SAFE_SPREAD else -math.inf
    return call.roughly(Interval(low, 0.0))


_SAFE_SPREAD = 8.0


@range_rule("ReduceLogSumExp")
def _log_of_sum(call: RangeCall) -> Interval:
    x = call.x
    if not x.is_finite or x.magnitude > _SAFE_SPREAD:
        return whole(call.dtype)
    count = call.extent(call.node.given(0))
    low = x.low if count.least > 0 else -math.inf
    return call.roughly(Interval(low, x.high + math.log(max(count.most, 1))))


@range_rule("LpNormalization")
def _unit(call: RangeCall) -> Interval:
    return call.roughly(Interval(-1.0, 1.0, True))


@range_rule("LRN")
def _local_response(call: RangeCall) -> Interval:
    node = call.node
    bias, alpha, beta = (float(node.attr(name)) for name in ("bias", "alpha", "beta"))
    if bias <= 0 or alpha < 0 or beta < 0 or not call.x.is_finite:
        return whole(call.dtype)
    factor = bias**-beta
    return call.roughly(multiply(hull((call.x, ZERO)), Interval(factor, factor)))


@range_rule("GRU", "LSTM", "RNN")
def _recurrent(call: RangeCall) -> Sequence[Interval | None]:
    node = call.node
    is_finite = all(each is None or each.is_finite for each in call.operands)
    if node.has_attr("activations") or not is_finite:
        return [whole(call.dtype)]
    states = hull((Interval(-1.0, 1.0), ZERO, *([call.operand(5)] if call.has(5) else [])))
    found = call.roughly(states).with_nan(True)
    return [found, found]


@range_rule("Attention")
def _attention(call: RangeCall) -> Sequence[Interval | None]:
    # An output is a mean of the rows of V, or NaN where a row is masked as a whole.
    values = [call.operand(place) for place in (2, 5) if call.has(place)]
    found = hull(values)
    return [call.roughly(found).with_nan(True) if found.is_finite else whole(call.dtype)]
