"""Sums of products: matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.value import Value
from tiered.graph.intervals.interval import (
    ANY,
    ZERO,
    Interval,
    add,
    hull,
    multiply,
    sum_error,
    whole,
)
from tiered.graph.intervals.rules.range_rule import Counts, RangeCall, range_rule

_ROWS: Final = 1 << 20
"""So many numbers of a weight are summed together."""


def _products(call: RangeCall, a: Interval, b: Interval, count: Counts) -> Interval:
    """Return the sums of `count` products."""
    return call.total(multiply(a, b), count)


def _with_weight(
    call: RangeCall,
    x: Interval,
    weight: Value,
    other: Interval,
    axes: Sequence[int],
    count: Counts,
) -> Interval:
    """Return the sums of products along the axes of a weight, exactly if it is constant."""
    numbers = weight.const
    if numbers is None or not numbers.size or not x.is_finite or not other.is_finite:
        return _products(call, x, other, count)
    positive, negative = _signed_sums(numbers, axes)
    highs = positive * float(x.high) - negative * float(x.low)
    lows = positive * float(x.low) - negative * float(x.high)
    terms = float((positive + negative).max()) * float(x.magnitude)
    error = sum_error(count.most, call.eps) * terms if call.eps else 0.0
    low, high = float(lows.min()) - error, float(highs.max()) + error
    if not call.eps:
        low, high = math.floor(low * (1 + 1e-9)) - 1, math.ceil(high * (1 + 1e-9)) + 1
    # A partial sum may be as large as that of all terms of one sign.
    is_beyond = terms + error > call.limit
    return Interval(-math.inf, math.inf, True) if is_beyond else Interval(low, high)


def _signed_sums(
    weight: np.ndarray[Any, Any], axes: Sequence[int]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the sums of the positive and of the negative numbers, both as magnitudes."""
    moved = np.moveaxis(weight, tuple(axes), range(len(axes)))
    rows = moved.reshape(math.prod(moved.shape[: len(axes)]), -1)
    positive = np.zeros(rows.shape[1])
    negative = np.zeros(rows.shape[1])
    step = max(_ROWS // max(rows.shape[1], 1), 1)
    for start in range(0, rows.shape[0], step):
        block = rows[start : start + step].astype(np.float64)
        positive += np.maximum(block, 0.0).sum(0)
        negative -= np.minimum(block, 0.0).sum(0)
    return positive, negative


@range_rule("MatMul")
def _matmul(call: RangeCall) -> Interval:
    a, b = call.node.given(0), call.node.given(1)
    inner = call.dims
    for value, axis in ((a, -1), (b, -2)):
        if value.rank:
            inner = call.size(value.dim(axis if value.rank > 1 else 0))
            if inner.least == inner.most:
                break
    if b.is_constant and b.rank:
        return _with_weight(call, call.x, b, call.operand(1), [max(b.rank - 2, 0)], inner)
    if a.is_constant and a.rank:
        return _with_weight(call, call.operand(1), a, call.x, [a.rank - 1], inner)
    return _products(call, call.x, call.operand(1), inner)


@range_rule("Gemm")
def _gemm(call: RangeCall) -> Interval:
    node = call.node
    alpha, beta = float(node.attr("alpha")), float(node.attr("beta"))
    a, b = node.given(0), node.given(1)
    axis = 1 if node.attr("transB") else 0
    inner = call.size(b.dim(axis))
    if inner.least != inner.most:
        inner = call.size(a.dim(0 if node.attr("transA") else 1))
    found = _with_weight(call, call.x, b, call.operand(1), [axis], inner)
    found = multiply(found, Interval(alpha, alpha))
    if call.has(2) and beta:
        found = add(found, multiply(call.operand(2), Interval(beta, beta)))
    return call.roughly(found) if call.eps else whole(call.dtype)


@range_rule("Conv", "ConvTranspose")
def _conv(call: RangeCall) -> Interval:
    weight = call.node.given(1)
    if not weight.rank:
        return whole(call.dtype)
    # Of a transposed one, an output has some of the products along the first axis only.
    axes = [0, *range(2, weight.rank)]
    if call.node.op_type == "Conv":
        axes[0] = 1
    count = call.extent(weight, axes)
    x = call.x
    # Padding is 0, and so is where a kernel does not reach: a term counts where it adds.
    terms = Counts(0, count.most)
    if not x.is_finite or not weight.is_constant:
        found = _products(call, hull((x, ZERO)), call.operand(1), terms)
    else:
        found = _with_weight(call, hull((x, ZERO)), weight, call.operand(1), axes, terms)
    if call.has(2):
        found = add(found, call.operand(2))
    # Kernels of Winograd and FFT type have larger errors than a sum.
    return call.roughly(found)


@range_rule("MatMulInteger")
def _matmul_integer(call: RangeCall) -> Interval:
    a, b = call.x, call.operand(1)
    node = call.node
    if call.has(2):
        a = Interval(a.low - call.operand(2).high, a.high - call.operand(2).low)
    if call.has(3):
        b = Interval(b.low - call.operand(3).high, b.high - call.operand(3).low)
    second = node.given(1)
    inner = call.size(second.dim(max(-2, -(second.rank or 1))))
    if inner.least != inner.most:
        inner = call.size(node.given(0).dim(-1))
    return _products(call, a, b, inner)


@range_rule("Einsum")
def _einsum(call: RangeCall) -> Interval:
    text = str(call.node.attr("equation")).replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    values = call.node.reads
    if not arrow or "." in text or any(value.rank is None for value in values):
        return whole(call.dtype)
    summed = sorted(set(left) - set(right) - {","})
    count = Counts(1, 1)
    for letter in summed:
        places = [(v, t.index(letter)) for v, t in zip(values, terms, strict=True) if letter in t]
        sizes = [call.size(value.dim(place)) for value, place in places]
        best = next((size for size in sizes if size.least == size.most), sizes[0])
        count = Counts(count.least * best.least, count.most * best.most)
    product = call.x
    for place in range(1, len(terms)):
        product = multiply(product, call.operand(place))
    return call.roughly(call.total(product, count))


@range_rule("DequantizeLinear", domain=("", "com.microsoft"))
def _dequantize(call: RangeCall) -> Interval:
    q = call.x
    zero = call.operand(2) if call.has(2) else ZERO
    if not q.is_finite or not zero.is_finite:
        return ANY
    steps = Interval(float(q.low) - float(zero.high), float(q.high) - float(zero.low))
    return call.roughly(multiply(steps, call.operand(1)))


@range_rule("QuantizeLinear", domain=("", "com.microsoft"))
def _quantize(call: RangeCall) -> Interval:
    dtype = call.dtype
    if dtype is None or not DataType(dtype).name.startswith(("INT", "UINT")):
        return whole(dtype)
    every, scale = whole(dtype), call.operand(1)
    zero = call.operand(2) if call.has(2) else ZERO
    if not call.x.is_finite or not scale.is_finite or scale.low <= 0:
        return every
    low = min(call.x.low / scale.low, call.x.low / scale.high) * (1 + 1e-6)
    high = max(call.x.high / scale.low, call.x.high / scale.high) * (1 + 1e-6)
    low, high = math.floor(max(low, -1e6)) - 1 + zero.low, math.ceil(min(high, 1e6)) + 1 + zero.high
    return Interval(
        int(min(max(low, every.low), every.high)), int(max(min(high, every.high), every.low))
    )
