"""Sliding windows of convolutions and pools as indices: the elements that each window reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tiered.graph import Graph, Node, Value

MOST_INDICES: Final = 1 << 20
"""More indices would make the model grow too much."""


class Axis(NamedTuple):
    """The windows along one spatial axis.

    Attributes:
        size: the dim of the image.
        before: the padding at its begin.
        after: the padding at its end.
        places: int64 [kernel, windows], where each element of each window is in the image; below 0
            or from `size` on it is in the padding, or beyond.
    """

    size: int
    before: int
    after: int
    places: NDArray[np.int64]

    @property
    def beyond(self) -> int:
        """The padding at the end that the windows need; it may be more or less than `after`."""
        return max(0, int(self.places.max(initial=-1)) + 1 - self.size)


class Windows(NamedTuple):
    """All windows of an image [batch, channels, *spatial]."""

    axes: tuple[Axis, ...]

    @property
    def kernel(self) -> int:
        """The number of elements of a window."""
        return math.prod(axis.places.shape[0] for axis in self.axes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of windows along each axis."""
        return tuple(axis.places.shape[1] for axis in self.axes)

    @property
    def is_whole(self) -> bool:
        """Whether there is one window, which is the image."""
        return all(
            axis.places.shape == (axis.size, 1) and (axis.places[:, 0] == range(axis.size)).all()
            for axis in self.axes
        )

    def inside(self, *, is_padding_inside: bool = False) -> NDArray[np.bool_]:
        """Return for each element of each window, [kernel, windows], whether it is in the image.

        Args:
            is_padding_inside: elements in the padding of the node, not beyond it, count too.
        """
        whole = np.ones((1, 1), bool)
        for axis in self.axes:
            first, last = -axis.before, axis.size + axis.after
            bounds = (first, last) if is_padding_inside else (0, axis.size)
            found = (axis.places >= bounds[0]) & (axis.places < bounds[1])
            whole = np.einsum("kp,lq->klpq", whole, found).reshape(
                whole.shape[0] * found.shape[0], -1
            )
        return whole

    def gather(self, graph: Graph, x: Value, fill: float) -> Value:
        """Return the elements of all windows, [batch, channels, kernel * windows].

        Args:
            graph: the graph of x.
            x: the image; its channels and spatial dims are numbers.
            fill: the value of elements in the padding.
        """
        before = [axis.before for axis in self.axes]
        beyond = [axis.beyond for axis in self.axes]
        sizes = [axis.size + b + e for axis, b, e in zip(self.axes, before, beyond, strict=True)]
        if any(before) or any(beyond):
            pads = np.array([0, 0, *before, 0, 0, *beyond], np.int64)
            value = np.array(fill, _numpy(x))
            x = graph.op.Pad(x, pads, graph.constant(value, "padding"))
        indices = np.zeros((1, 1), np.int64)
        for axis, size in zip(self.axes, sizes, strict=True):
            places = axis.places + axis.before
            # Row-major: [kernel so far * kernel, windows so far * windows].
            indices = indices[:, None, :, None] * size + places[None, :, None, :]
            indices = indices.reshape(indices.shape[0] * indices.shape[1], -1)
        channels = x.dim(1)
        assert isinstance(channels, int)
        flat = graph.op.Reshape(x, np.array([0, channels, math.prod(sizes)], np.int64))
        return graph.op.Gather(flat, graph.constant(indices.ravel(), "windows"), axis=2)


def windows_of(node: Node, x: Value, kernel: Sequence[int]) -> Windows | Skip:
    """Return the windows of a convolution or a pool, or why they are not known.

    Args:
        node: the node, whose first output has a shape of numbers.
        x: its image.
        kernel: the size of the kernel along each spatial axis.
    """
    rank = len(kernel)
    sizes = [dim for dim in (x.shape or ())[1:] if isinstance(dim, int) and dim > 0][1:]
    counts = [dim for dim in (node.output.shape or ())[2:] if isinstance(dim, int) and dim > 0]
    if not rank or len(sizes) != rank or len(counts) != rank:
        return Skip("sizes of image and result are not known")
    strides = node.attr("strides", None) or [1] * rank
    dilations = node.attr("dilations", None) or [1] * rank
    pads = node.attr("pads", None) or [0] * (2 * rank)
    how = node.attr("auto_pad", "NOTSET")
    if how.startswith("SAME") and any(step != 1 for step in dilations):
        return Skip("runtimes differ on auto_pad with dilations")
    axes = []
    for at, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        before, after = pads[at], pads[at + rank]
        if how != "NOTSET":
            total = max(0, (count - 1) * strides[at] + kernel[at] - size)
            total = total if how.startswith("SAME") else 0
            before = total // 2 if how != "SAME_LOWER" else total - total // 2
            after = total - before
        if before < 0 or after < 0:
            return Skip("the image is cropped by negative pads")
        steps = np.arange(kernel[at])[:, None] * dilations[at]
        places = np.arange(count)[None, :] * strides[at] + steps - before
        axes.append(Axis(size, before, after, places.astype(np.int64)))
    found = Windows(tuple(axes))
    elements = found.kernel * math.prod(found.counts)
    if elements > MOST_INDICES:
        return Skip("the windows have {} elements", elements)
    return found


def convolved(
    graph: Graph,
    windows: Windows,
    x: Value,
    weight: Value,
    bias: Value | None,
    *,
    kernels: int,
    group: int,
    by_sample: bool = False,
) -> Value:
    """Return a convolution as a product of the kernels and the windows as columns (im2col).

    Args:
        graph: the graph of x.
        windows: those of x.
        x: the image [batch, C_in, *spatial]; all but the batch are numbers.
        weight: the kernels [C_out, C_in / group, *kernel]; [batch * C_out, ...] if each sample has
            its own.
        bias: [C_out], or [batch * C_out]; None if there is none.
        kernels: C_out.
        group: the number of groups of one sample.
        by_sample: each sample has kernels of its own.

    Returns:
        [batch, C_out, *windows].
    """
    channels = weight.dim(1)
    assert isinstance(channels, int)
    ahead, inner = [-1] if by_sample else [], channels * windows.kernel
    # One group needs no axis of its own: targets limit the rank.
    middle = [] if group == 1 else [group]
    columns = graph.op.Reshape(
        windows.gather(graph, x, 0.0),
        np.array([0, *middle, inner, math.prod(windows.counts)], np.int64),
    )
    matrix = graph.op.Reshape(
        weight, np.array([*ahead, *middle, kernels // group, inner], np.int64)
    )
    product = graph.op.MatMul(matrix, columns)
    whole: Value = graph.op.Reshape(product, np.array([0, kernels, *windows.counts], np.int64))
    if bias is None:
        return whole
    ones = [*ahead, kernels, *[1] * len(windows.counts)]
    made: Value = graph.op.Add(whole, graph.op.Reshape(bias, np.array(ones, np.int64)))
    return made


def _numpy(x: Value) -> Any:
    from tiered.graph.core.dtypes import DataType

    assert x.dtype is not None
    return DataType(x.dtype).numpy
