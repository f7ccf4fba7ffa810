"""Gradients of convolutions: each is a convolution too.

Source: Dumoulin and Visin, A guide to convolution arithmetic for deep learning, chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import Value


class Window(NamedTuple):
    """How a convolution or pool moves over the spatial axes.

    Attributes:
        kernel, strides, dilations: a number for each spatial axis.
        begins, ends: the padding before and after.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """The elements from the first to the last of one window."""
        pairs = zip(self.kernel, self.dilations, strict=True)
        return tuple((size - 1) * dilation + 1 for size, dilation in pairs)


def spatial_dims(value: Value) -> tuple[int, ...] | None:
    """Return the sizes of all axes but the first two; None if one of them is unknown."""
    shape = value.shape
    if shape is None:
        return None
    known = tuple(size for size in shape[2:] if isinstance(size, int))
    return known if len(known) == len(shape[2:]) else None


def window_of(step: Step, kernel: Sequence[int], image: Expr) -> Window:
    """Return the window of a Conv, ConvTranspose or pool.

    Args:
        step: the node.
        kernel: the spatial dims of the kernel.
        image: the operand over which the window moves, [N, C, *spatial].

    Raises:
        NoGradient: auto_pad needs dims that are unknown.
    """
    node, axes = step.node, len(kernel)
    strides = tuple(node.attr("strides") or (1,) * axes)
    dilations = tuple(node.attr("dilations") or (1,) * axes)
    pads = tuple(node.attr("pads") or (0,) * (2 * axes))
    mode = str(node.attr("auto_pad") or "NOTSET")
    if mode == "VALID":
        pads = (0,) * (2 * axes)
    elif mode != "NOTSET":
        dims = spatial_dims(image.value)
        if dims is None:
            raise step.error("auto_pad needs known spatial dims")
        extents = [(size - 1) * wide + 1 for size, wide in zip(kernel, dilations, strict=True)]
        sizes = zip(dims, strides, extents, strict=True)
        totals = [max((-(-size // by) - 1) * by + wide - size, 0) for size, by, wide in sizes]
        less, more = [each // 2 for each in totals], [each - each // 2 for each in totals]
        pads = (*less, *more) if mode == "SAME_UPPER" else (*more, *less)
    return Window(tuple(kernel), strides, dilations, pads[:axes], pads[axes:])


def spread_back(g: Expr, weight: Expr, window: Window, image: Expr, group: int) -> Expr:
    """Return the transposed convolution of g, in the spatial dims of the image.

    Rows that no window reaches get zeros.
    """
    axes = len(window.kernel)
    settings = {"strides": window.strides, "dilations": window.dilations, "group": group}
    there, here = spatial_dims(image.value), spatial_dims(g.value)
    if there is not None and here is not None:
        beyond = [
            size - ((count - 1) * stride + extent - begin - end)
            for size, count, stride, extent, begin, end in zip(
                there, here, window.strides, window.extent, window.begins, window.ends,
                strict=True,
            )
        ]  # fmt: skip
        # An output padding is less than the stride.
        if all(0 <= more < by for more, by in zip(beyond, window.strides, strict=True)):
            pads = [*window.begins, *window.ends]
            extra = {"output_padding": beyond} if any(beyond) else {}
            return g.call("ConvTranspose", g, weight, pads=pads, **settings, **extra)
    whole = g.call("ConvTranspose", g, weight, **settings)
    spatial = list(range(2, 2 + axes))
    sizes = image.sizes(2)
    begins = whole.integers(window.begins)
    cropped = whole.call("Slice", whole, begins, begins + sizes, spatial)
    lacking = sizes - cropped.sizes(2)
    pads_there = whole.call("Concat", [0] * (4 + axes), lacking, axis=0)
    return cropped.call("Pad", cropped, pads_there)


def correlation(image: Expr, g: Expr, weight: Expr, window: Window, group: int) -> Expr:
    """Return the gradient of a kernel [M, C / group, *kernel], from the image and from g.

    It is a convolution of the image with g, where batch and channels change places, and strides
    and dilations too.
    """
    axes = len(window.kernel)
    space = range(3, 3 + axes)
    turned = [1, 0, *range(2, 2 + axes)]
    image, pads = _reached(image, g, window)
    if group == 1:
        data = image.transpose(turned)
    else:
        channels = weight.dim(1)
        spatial = image.sizes(2)
        apart = image.call("Concat", [0, group], channels, spatial, axis=0)
        data = image.reshape(apart).transpose([2, 1, 0, *space])
        joined = image.call("Concat", channels, [-1], spatial, axis=0)
        data = data.reshape(joined)
    result = data.call(
        "Conv", data, g.transpose(turned), group=group, strides=window.dilations,
        dilations=window.strides, pads=pads,
    )  # fmt: skip
    return result.transpose(turned)


def _reached(image: Expr, g: Expr, window: Window) -> tuple[Expr, list[int]]:
    """Return the image up to the end of the last window, and its padding: begins, then ends.

    With more of it the kernel would get elements behind its last one.
    """
    axes = len(window.kernel)
    whole = [*window.begins, *window.ends]
    if all(stride == 1 for stride in window.strides):
        return image, whole
    spatial = list(range(2, 2 + axes))
    there, here = spatial_dims(image.value), spatial_dims(g.value)
    if there is not None and here is not None:
        counts = zip(here, window.strides, window.extent, window.begins, strict=True)
        reached = [(count - 1) * by + wide - begin for count, by, wide, begin in counts]
        lacking = [end - size for end, size in zip(reached, there, strict=True)]
        if min(reached) > 0:
            if min(lacking) < 0:
                image = image.call("Slice", image, [0] * axes, reached, spatial)
            return image, [*window.begins, *(max(more, 0) for more in lacking)]
    if any(whole):
        image = image.call("Pad", image, [0, 0, *window.begins, 0, 0, *window.ends])
    last = image.call("Mul", g.sizes(2) - 1, list(window.strides))
    reach = image.call("Add", last, list(window.extent))
    return image.call("Slice", image, [0] * axes, reach, spatial), [0] * (2 * axes)


def _kernel(step: Step) -> tuple[int, ...]:
    """Return the spatial dims of the weight.

    Raises:
        NoGradient: they are unknown.
    """
    dims = spatial_dims(step.operand(1).value)
    if dims is None:
        raise step.error("the shape of its weight is unknown")
    return dims


@gradient_rule("Conv")
def conv(step: Step) -> Sequence[Expr | None]:
    """dx = ConvTranspose(g, w); dw = Conv(x, g) over the batch; db = the sum of g per channel"""
    x, weight, g = step.x, step.operand(1), step.g
    window, group = window_of(step, _kernel(step), x), int(step.node.attr("group"))
    dx = spread_back(g, weight, window, x, group) if step.wants(0) else None
    dw = correlation(x, g, weight, window, group) if step.wants(1) else None
    return dx, dw, _bias(step)


@gradient_rule("ConvTranspose")
def conv_transpose(step: Step) -> Sequence[Expr | None]:
    """dx = Conv(g, w); dw = Conv(g, x) over the batch; db = the sum of g per channel"""
    node, x, weight, g = step.node, step.x, step.operand(1), step.g
    window, group = _transposed_window(step), int(node.attr("group"))
    settings = {"strides": window.strides, "dilations": window.dilations, "group": group}
    pads = [*window.begins, *window.ends]
    dx = g.call("Conv", g, weight, pads=pads, **settings) if step.wants(0) else None
    dw = correlation(g, x, weight, window, group) if step.wants(1) else None
    return dx, dw, _bias(step)


def _transposed_window(step: Step) -> Window:
    """Return the window of a ConvTranspose, with the pads that its output shape follows from.

    Raises:
        NoGradient: auto_pad or output_shape need dims that are unknown.
    """
    node = step.node
    mode = str(node.attr("auto_pad"))
    window = window_of(step, _kernel(step), step.g)
    if mode in ("NOTSET", "VALID") and not node.attr("output_shape"):
        return window
    there, here = spatial_dims(step.x.value), spatial_dims(step.y.value)
    if there is None or here is None:
        raise step.error("auto_pad and output_shape need known spatial dims")
    more = node.attr("output_padding") or (0,) * len(window.kernel)
    totals = [
        max((size - 1) * by + extra + extent - result, 0)
        for size, by, extra, extent, result in zip(
            there, window.strides, more, window.extent, here, strict=True
        )
    ]
    less, rest = [each // 2 for each in totals], [each - each // 2 for each in totals]
    begins, ends = (less, rest) if mode == "SAME_UPPER" else (rest, less)
    return window._replace(begins=tuple(begins), ends=tuple(ends))


@gradient_rule("Col2Im")
def col2im(step: Step) -> Sequence[Expr | None]:
    """dx = Conv(g, the identity): each window of g becomes a column"""
    block = step.operand(2)
    window = window_of(step, [1] * (step.g.rank - 2), step.g)
    taps = block.call("ReduceProd", block, keepdims=1)
    square = taps.call("Concat", taps, taps, axis=0).full(0, step.x.dtype)
    identity = square.call("EyeLike", square)
    identity = identity.reshape(block.call("Concat", [-1, 1], block, axis=0))
    # Each channel for itself: the channels become images of a batch.
    sizes = step.g.sizes(2)
    images = step.g.reshape(step.g.call("Concat", [-1, 1], sizes, axis=0))
    columns = images.call(
        "Conv", images, identity, strides=window.strides, dilations=window.dilations,
        pads=[*window.begins, *window.ends],
    )  # fmt: skip
    return columns.reshape_as(step.x), None, None


def _bias(step: Step) -> Expr | None:
    """Return the sums of g per channel, if there is a bias."""
    if not step.wants(2):
        return None
    return step.g.sum([0, *range(2, step.g.rank)], keepdims=False)
