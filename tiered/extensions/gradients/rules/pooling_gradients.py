"""Gradients of pools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiered.extensions.gradients.copy_adjoint import summed_at
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, expansion, gradient_rule
from tiered.extensions.gradients.rules.conv_gradients import (
    Window,
    spatial_dims,
    spread_back,
    window_of,
)


@gradient_rule("MaxPool")
def max_pool(step: Step) -> Sequence[Expr | None]:
    """dx = g, added at the position of the largest element of each window"""
    node, x = step.node, step.x
    indices = step.outputs[1] if len(step.outputs) > 1 else None
    if indices is None or int(node.attr("storage_order", 0)):
        attributes = {**node.attributes, "storage_order": 0}
        _, indices = x.calls("MaxPool", x, outputs=2, **attributes)
    count = x.call("Size", x).unsqueeze([0])
    return (summed_at(indices.reshape([-1]), step.g.reshape([-1]), count).reshape_as(x),)


@gradient_rule("GlobalAveragePool")
def global_average_pool(step: Step) -> Sequence[Expr | None]:
    """dx = g / n, repeated, for n elements of a channel"""
    x = step.x
    size = x.sizes(2)
    count = size.call("ReduceProd", size, keepdims=0).cast(x.dtype)
    share = step.g / count
    return (share.call("Expand", share, x.shape()),)


@gradient_rule("GlobalMaxPool")
def global_max_pool(step: Step) -> Sequence[Expr | None]:
    """dx = g where x = y; elements that are equal share it in equal parts"""
    chosen = step.x.equals(step.y).cast(step.x.dtype)
    number = chosen.sum(range(2, step.x.rank))
    return (chosen * (step.g / number.call("Max", number, 1.0)),)


@expansion("LpPool")
def lp_pool(step: Step) -> Sequence[Expr | None]:
    """y = (the sum of |x| ^ p in a window) ^ (1 / p)"""
    attributes, x = dict(step.node.attributes), step.x
    power = float(attributes.pop("p", 2))
    kernel = tuple(attributes["kernel_shape"])
    # The padding of auto_pad and ceil_mode is not counted by every AveragePool, written pads are.
    window = window_of(step, kernel, x)
    attributes.pop("auto_pad", None)
    if attributes.pop("ceil_mode", 0):
        window = _up_to_last_window(step, window)
    attributes["pads"] = [*window.begins, *window.ends]
    powers = x.call("Abs", x) ** power
    mean = powers.call("AveragePool", powers, count_include_pad=1, **attributes)
    return ((mean * float(np.prod(kernel))).root(power),)


@gradient_rule("AveragePool")
def average_pool(step: Step) -> Sequence[Expr | None]:
    """dx = the transposed sum of g / n, for n elements that the window counts"""
    node, x = step.node, step.x
    window = window_of(step, tuple(node.attr("kernel_shape")), x)
    if int(node.attr("ceil_mode", 0)):
        window = _up_to_last_window(step, window)
    counted = _counts(step, window)
    # Each channel for itself: the channels become images of a batch.
    images = _one_channel(step.g / counted)
    ones = x.integers([1, 1, *window.kernel]).full(1, x.dtype)
    spread = spread_back(images, ones, window, _one_channel(x), 1)
    return (spread.reshape_as(x),)


def _one_channel(x: Expr) -> Expr:
    """Return [N, C, *spatial] as [N * C, 1, *spatial]."""
    sizes = x.sizes(2)
    return x.reshape(x.call("Concat", x.integers([-1, 1]), sizes, axis=0))


def _counts(step: Step, window: Window) -> Expr:
    """Return how many elements each window counts, [1, 1, *spatial of the output]."""
    x, node = step.x, step.node
    sizes = x.call("Concat", x.integers([1, 1]), x.sizes(2), axis=0)
    inside = sizes.full(1, x.dtype)
    axes = len(window.kernel)
    pads = tuple(node.attr("pads") or (0,) * (2 * axes))
    if int(node.attr("count_include_pad", 0)) and any(pads):
        grown = inside.integers([0, 0, *window.begins, 0, 0, *pads[axes:]])
        inside = inside.call("Pad", inside, grown, 1.0)
        beyond = [end - own for end, own in zip(window.ends, pads[axes:], strict=True)]
        rest = [0] * axes + beyond
    else:
        rest = [*window.begins, *window.ends]
    ones = x.integers([1, 1, *window.kernel]).full(1, x.dtype)
    return inside.call(
        "Conv", inside, ones, pads=rest, strides=window.strides, dilations=window.dilations
    )


def _up_to_last_window(step: Step, window: Window) -> Window:
    """Return the window with a padding that reaches the end of the last window.

    Raises:
        NoGradient: the dims are unknown.
    """
    there, here = spatial_dims(step.x.value), spatial_dims(step.y.value)
    if there is None or here is None:
        raise step.error("ceil_mode needs known spatial dims")
    ends = tuple(
        max(end, (count - 1) * stride + extent - size - begin)
        for end, count, stride, extent, size, begin in zip(
            window.ends, here, window.strides, window.extent, there, window.begins,
            strict=True,
        )
    )  # fmt: skip
    return window._replace(ends=ends)
