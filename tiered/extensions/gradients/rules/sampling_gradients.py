"""GridSample, DeformConv and RoiAlign as weighted sums of the elements near some coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion
from tiered.graph import DataType


class _Near(NamedTuple):
    """The elements near the coordinates along one axis, [N, P, K], and their weights."""

    places: Expr
    weights: Expr


def _linear(x: Expr) -> _Near:
    """Return the elements below and above each coordinate x."""
    below = x.call("Floor", x)
    part = x - below
    return _Near(_stacked(below, below + 1), _stacked(1 - part, part))


def _nearest(x: Expr) -> _Near:
    """Return the nearest element, of two the even one."""
    rounded = x.call("Round", x)
    return _Near(_stacked(rounded), _stacked(x.ones()))


def _cubic(x: Expr) -> _Near:
    """Return four elements, with the weights of cubic convolution.

    Source: Keys, Cubic convolution interpolation for digital image processing, 1981; a = -0.75.
    """
    a = -0.75
    below = x.call("Floor", x)
    part = x - below

    def inner(t: Expr) -> Expr:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def outer(t: Expr) -> Expr:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    weights = outer(part + 1), inner(part), inner(1 - part), outer(2 - part)
    return _Near(_stacked(below - 1, below, below + 1, below + 2), _stacked(*weights))


def _stacked(*parts: Expr) -> Expr:
    """Return [N, P] parts as [N, P, K]."""
    wide = [part.unsqueeze([2]) for part in parts]
    return wide[0] if len(wide) == 1 else wide[0].call("Concat", *wide, axis=2)


_KERNELS = {
    "bicubic": _cubic, "bilinear": _linear, "cubic": _cubic, "linear": _linear, "nearest": _nearest
}  # fmt: skip


def _zeros_outside(near: _Near, size: Expr) -> _Near:
    """Return the elements with the weight 0 for places outside of the image."""
    last = size - 1
    inside = near.places.greater(-0.5).both(near.places.less(last + 0.5))
    return _Near(near.places, near.weights * inside.cast(near.weights.dtype))


def _reflected_outside(near: _Near, size: Expr, is_aligned: bool) -> _Near:
    """Return the elements with places that are reflected until they are inside of the image."""
    x, low = near.places, 0.0 if is_aligned else -0.5
    width = size.call("Max", size - 1, 1.0) if is_aligned else size
    distance = x.call("Abs", x - low)
    within = x.call("Mod", distance, width + width, fmod=1)
    inside = width - x.call("Abs", within - width) + low
    return _Near(x.call("Round", inside), near.weights)


class _Elements(NamedTuple):
    """Elements near P points: [N, P, K, C], and the weight of each, [N, P, K]."""

    elements: Expr
    weights: Expr

    def sum(self) -> Expr:
        """Return the weighted sums, [N, P, C]."""
        weights = self.weights.cast(self.elements.dtype)
        return (self.elements * weights.unsqueeze([3])).sum([2], keepdims=False)


def _elements(
    rows: Expr, sizes: Sequence[Expr], nears: Sequence[_Near], first: Expr | None = None
) -> _Elements:
    """Return the elements near some points.

    Args:
        rows: the elements of the image, [N, size, C].
        sizes: the number of elements along each axis, int64 [1].
        nears: the places along each axis; those outside of the image become the last ones.
        first: the image of each point, [N, P, 1], where the rows are those of several images.
    """
    flat, weights = first, None
    for size, near in zip(sizes, nears, strict=True):
        last = (size - 1).cast(near.places.dtype).squeeze([0])
        places = near.places.call("Clip", near.places, 0.0, last).cast(DataType.INT64)
        if flat is not None:
            places = _outer(flat * size, "Add", places)
        flat = places
        own = near.weights
        weights = own if weights is None else _outer(weights, "Mul", own)
    assert flat is not None
    assert weights is not None
    return _Elements(rows.call("GatherND", rows, flat.unsqueeze([3]), batch_dims=1), weights)


def _outer(left: Expr, op_type: str, right: Expr) -> Expr:
    """Return all pairs of two [N, P, ...] in one axis."""
    pairs = left.call(op_type, left.unsqueeze([3]), right.unsqueeze([2]))
    return pairs.reshape([0, 0, -1])


@expansion("GridSample")
def grid_sample(step: Step) -> Sequence[Expr | None]:
    """y = the weighted sum of the elements of x near the coordinates of the grid

    Padding says which element takes the place of one that is outside of the image: none, the last
    one, or the mirror image.
    """
    node, x, grid = step.node, step.x, step.operand(1)
    axes = x.rank - 2
    is_aligned, padding = bool(node.attr("align_corners")), str(node.attr("padding_mode"))
    kernel = _KERNELS[str(node.attr("mode"))]
    points = grid.reshape([0, -1, axes])
    sizes, nears = [], []
    for at in range(axes):
        size = x.dim(2 + at)
        number = size.cast(grid.dtype)
        # The coordinates of the last axis come first, from -1 to 1.
        own = points.call("Gather", points, np.int64(axes - 1 - at), axis=2)
        place = (own + 1) * ((number - 1) if is_aligned else number) / 2
        near = kernel(place if is_aligned else place - 0.5)
        if padding == "zeros":
            near = _zeros_outside(near, number)
        elif padding == "reflection":
            near = _reflected_outside(near, number, is_aligned)
        sizes.append(size)
        nears.append(near)
    rows = x.reshape([0, 0, -1]).transpose([0, 2, 1])
    found = _elements(rows, sizes, nears).sum()
    return (found.transpose([0, 2, 1]).reshape_as(step.y),)


@expansion("DeformConv")
def deform_conv(step: Step) -> Sequence[Expr | None]:
    """y = the products of the weights with the elements at the shifted places of each window"""
    node, x, weight, offset = step.node, step.x, step.operand(1), step.operand(2)
    shape = weight.value.static_shape
    if x.rank != 4 or shape is None:
        raise step.error("DeformConv needs two spatial axes and a weight of known dims")
    kernel, groups = shape[2:], int(node.attr("offset_group"))
    apart = int(node.attr("group"))
    channels = x.dim(1) / groups
    # Each group of channels with its own offsets becomes an image of the batch.
    rows = x.reshape(x.call("Concat", [-1], channels, x.dim(2) * x.dim(3), axis=0))
    there = offset.call("Concat", [-1, *kernel, 2], offset.sizes(2), axis=0)
    offsets = offset.reshape(there)
    sizes, nears = [], []
    for at in range(2):
        size = x.dim(2 + at)
        own = offsets.call("Gather", offsets, np.int64(at), axis=3)
        near = _linear((own + _window_places(step, kernel[at], at)).reshape([0, -1]))
        sizes.append(size)
        nears.append(_zeros_outside(near, size.cast(x.dtype)))
    found = _elements(rows.transpose([0, 2, 1]), sizes, nears).sum()
    if step.has(4):
        found = found * step.operand(4).reshape(
            found.call("Concat", found.sizes(0, 2), [1], axis=0)
        )
    # [N * offset groups, C / offset groups, kernel * L] is [N, group, C / group * kernel, L].
    columns = found.transpose([0, 2, 1])
    length = step.y.dim(2) * step.y.dim(3)
    taps = shape[1] * kernel[0] * kernel[1]
    columns = columns.reshape(columns.call("Concat", [-1, apart, taps], length, axis=0))
    y = (weight.reshape([apart, shape[0] // apart, taps]) @ columns).reshape_as(step.y)
    return (y + step.operand(3).unsqueeze([1, 2]) if step.has(3) else y,)


def _window_places(step: Step, size: int, at: int) -> Expr:
    """Return the places of the kernel in each window, [kH, kW, H, W] with axes of size 1."""
    node, x = step.node, step.x
    stride = int((node.attr("strides") or (1, 1))[at])
    dilation = int((node.attr("dilations") or (1, 1))[at])
    begin = int((node.attr("pads") or (0,) * 4)[at])
    starts = x.call("Range", np.int64(0), step.y.dim(2 + at).squeeze([0]), np.int64(1)) * stride
    inner = x.integers([dilation * tap - begin for tap in range(size)])
    inner = inner.reshape([1] * at + [size] + [1] * (3 - at))
    return (inner + starts.reshape([-1] + [1] * (1 - at))).cast(x.dtype)


@expansion("RoiAlign")
def roi_align(step: Step) -> Sequence[Expr | None]:
    """y = the means, or the largest, of the elements near the points of each bin"""
    node, x, rois = step.node, step.x, step.operand(1)
    points = int(node.attr("sampling_ratio"))
    if points < 1:
        raise step.error("sampling_ratio=0 needs the sizes of the regions")
    is_half = str(node.attr("coordinate_transformation_mode", "output_half_pixel")) == "half_pixel"
    scaled = rois * float(node.attr("spatial_scale")) - (0.5 if is_half else 0.0)
    bins = int(node.attr("output_height")), int(node.attr("output_width"))
    counts = [count * points for count in bins]
    sizes, nears, outside = [], [], None
    for at in range(2):
        size = x.dim(2 + at)
        number = size.cast(x.dtype)
        start, end = (
            scaled.call("Slice", scaled, [place], [place + 1], [1]) for place in (1 - at, 3 - at)
        )
        width = end - start
        width = width if is_half else width.call("Max", width, 1.0)
        within = (np.arange(counts[at]) + 0.5) / counts[at]
        own = start + width * x.of(
            x.graph.constant(within.astype(x.dtype.numpy), f"{x.name}/points")
        )
        # [regions, H, W], as one row of points.
        own = own.unsqueeze([2 - at])
        own = own.call("Expand", own, own.integers([1, *counts])).reshape([1, -1])
        beyond = own.less(-1.0).either(own.greater(number))
        outside = beyond if outside is None else outside.either(beyond)
        inside = own.call("Min", own.call("Max", own, 0.0), number - 1)
        sizes.append(size)
        nears.append(_linear(inside))
    assert outside is not None
    image = step.operand(2).cast(DataType.INT64).unsqueeze([1])
    image = image.call("Expand", image, image.integers([1, counts[0] * counts[1]]))
    rows = x.transpose([0, 2, 3, 1]).reshape(x.call("Concat", [1, -1], x.dim(1), axis=0))
    found = _elements(rows, sizes, nears, image.reshape([1, -1, 1]))
    found = found._replace(weights=found.weights * outside.negated().cast(x.dtype).unsqueeze([2]))
    if str(node.attr("mode")) == "max":
        parts = found.elements * found.weights.unsqueeze([3])
        values, reduction = parts.call("ReduceMax", parts, [2], keepdims=0), "ReduceMax"
    else:
        values, reduction = found.sum(), "ReduceMean"
    apart = values.integers([-1, bins[0], points, bins[1], points])
    grouped = values.reshape(values.call("Concat", apart, x.dim(1), axis=0))
    return (grouped.call(reduction, grouped, [2, 4], keepdims=0).transpose([0, 3, 1, 2]),)
