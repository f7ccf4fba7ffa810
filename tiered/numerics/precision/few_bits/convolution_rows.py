"""Windows of images: the rows that a convolution multiplies its weights by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tiered.graph import Node

Array = np.ndarray[Any, Any]


class ConvolutionWindow(NamedTuple):
    """What a convolution reads for one element of its result.

    Attributes:
        kernel, strides, dilations: along each spatial axis.
        pads: before and after each spatial axis.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, node: Node, shape: Sequence[int]) -> ConvolutionWindow | None:
        """Return the window of a Conv with a weight of a shape; None if pads depend on the image.

        Args:
            node: the Conv.
            shape: of its weight.
        """
        kernel = tuple(shape[2:])
        if node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or not kernel:
            return None
        ones = [1] * len(kernel)
        pads = tuple(node.attr("pads") or [0, 0] * len(kernel))
        if node.attr("auto_pad", "NOTSET") == "VALID":
            pads = (0, 0) * len(kernel)
        return cls(
            kernel,
            tuple(node.attr("strides") or ones),
            tuple(node.attr("dilations") or ones),
            tuple(zip(pads[: len(kernel)], pads[len(kernel) :], strict=True)),
        )

    def rows(self, image: Array, most: int) -> Array:
        """Return some windows of an image as rows, float32 [rows, channels * kernel].

        Args:
            image: [batch, channels, *spatial].
            most: the number of rows, drawn with a fixed seed; all if there are not more.
        """
        padded = np.pad(image.astype(np.float32), [(0, 0), (0, 0), *self.pads])
        axes = tuple(range(2, image.ndim))
        inner = [slice(None, None, step) for step in self.dilations]
        pairs = zip(self.kernel, self.dilations, strict=True)
        spans = [(size - 1) * step + 1 for size, step in pairs]
        if any(padded.shape[axis] < span for axis, span in zip(axes, spans, strict=True)):
            return np.empty((0, image.shape[1] * math.prod(self.kernel)), np.float32)
        every = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=axes)
        steps = [slice(None, None, step) for step in self.strides]
        windows = every[(slice(None), slice(None), *steps, *inner)]
        windows = np.moveaxis(windows, 1, 1 + len(axes))  # [batch, *places, channels, *kernel]
        places = windows.shape[: 1 + len(axes)]
        total = math.prod(places)
        chosen = np.arange(total)
        if total > most:
            chosen = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
        columns = math.prod(windows.shape[len(places) :])
        rows: Array = windows[np.unravel_index(chosen, places)].reshape(len(chosen), columns)
        return rows
