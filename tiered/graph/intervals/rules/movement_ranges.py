"""Operators that move or select elements, or make tensors of a few numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.graph.intervals.interval import ZERO, Interval, hull, of_tensor, whole, widened
from tiered.graph.intervals.rules.range_rule import RangeCall, range_rule
from tiered.graph.queries.op_traits import MOVES_FIRST

MOVES = (MOVES_FIRST - {"Identity"}) | {"CenterCropPad", "Compress"}  # Identity is elementwise
"""Operators whose outputs have only elements of the first operand."""


@range_rule(*MOVES)
def _moved(call: RangeCall) -> Sequence[Interval]:
    x = hull((call.x, ZERO)) if call.node.op_type == "CenterCropPad" else call.x
    return [x] * len(call.node.outputs)


@range_rule("Trilu")
def _trilu(call: RangeCall) -> Interval:
    return hull((call.x, ZERO))


@range_rule("Concat")
def _concat(call: RangeCall) -> Interval:
    return hull(each for each in call.operands if each is not None)


@range_rule("Pad")
def _pad(call: RangeCall) -> Interval:
    if call.node.attr("mode") != "constant":
        return call.x
    if call.has(2):
        return hull((call.x, call.operand(2)))
    value = call.node.attr("value", 0.0)
    return hull((call.x, Interval(float(value), float(value)))) if value else hull((call.x, ZERO))


@range_rule("Scatter", "ScatterElements", "ScatterND")
def _scatter(call: RangeCall) -> Interval:
    if call.node.attr("reduction", "none") not in ("none", "max", "min"):
        return whole(call.dtype)
    return hull((call.x, call.operand(2)))


@range_rule("OneHot")
def _one_hot(call: RangeCall) -> Interval:
    return call.operand(2)


@range_rule("TopK", "Unique")
def _picked(call: RangeCall) -> Sequence[Interval | None]:
    x, axis = call.node.given(0), call.node.attr("axis", None)
    every = call.extent(x)
    count = every.most if axis is None else call.extent(x, [axis]).most
    places = Interval(0, max(count - 1, 0))
    return [call.x, places, places, Interval(0, every.most)][: len(call.node.outputs)]


@range_rule("ArgMax", "ArgMin")
def _place(call: RangeCall) -> Interval:
    count = call.extent(call.node.given(0), [call.node.attr("axis")]).most
    return Interval(0, max(count - 1, 0))


@range_rule("NonZero")
def _non_zero(call: RangeCall) -> Interval:
    shape = call.node.given(0).shape
    if not shape:
        return Interval(0, call.dims.most)
    return Interval(0, max(max(call.size(dim).most for dim in shape) - 1, 0))


@range_rule("NonMaxSuppression")
def _boxes(call: RangeCall) -> Interval:
    return Interval(0, call.dims.most)


@range_rule("Shape")
def _shape(call: RangeCall) -> Interval:
    shape = call.node.given(0).shape
    if not shape:
        return Interval(0, call.dims.most)
    sizes = [call.size(dim) for dim in shape]
    return Interval(min(size.least for size in sizes), max(size.most for size in sizes))


@range_rule("Size")
def _size(call: RangeCall) -> Interval:
    return Interval(*call.extent(call.node.given(0)))


@range_rule("ConstantOfShape")
def _filled(call: RangeCall) -> Interval:
    value = call.node.attr("value", None)
    return ZERO if value is None else of_tensor(value)


@range_rule("Range")
def _range(call: RangeCall) -> Interval:
    start, limit, delta = (call.operand(place) for place in range(3))
    if start.may_be_nan or delta.may_be_nan or limit.may_be_nan:
        return whole(call.dtype)
    found = hull((start, limit))
    return widened(found, 64 * call.eps, call.eps * call.dims.most * delta.magnitude)


@range_rule("Resize", "Upsample")
def _resize(call: RangeCall) -> Interval:
    mode, x = call.node.attr("mode"), call.x
    if mode in (b"nearest", "nearest") and not _extrapolates(call):
        return x
    if mode in (b"linear", "linear") and not _extrapolates(call) and x.is_finite:
        return call.roughly(widened(x, 64 * call.eps, 64 * call.eps * x.magnitude))
    return whole(call.dtype)


def _extrapolates(call: RangeCall) -> bool:
    return bool(call.node.attr("coordinate_transformation_mode", "") == "tf_crop_and_resize")


@range_rule("RandomUniform", "RandomUniformLike")
def _uniform(call: RangeCall) -> Interval:
    return Interval(float(call.node.attr("low")), float(call.node.attr("high")))
