"""Where the kernels of convolutions and pools read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tiered.certify.domains.terms import Array, Seed, joined, mix, odd_numbers, seed_of
from tiered.certify.evaluation.values import Unproved


class WindowAttributes(Protocol):
    """A node as far as windows depend on it."""

    @property
    def op(self) -> str: ...
    def get(self, name: str, default: Any = None) -> Any: ...


class KernelWindows:
    """Where a kernel reads, along the spatial axes of a tensor.

    Attributes:
        counts: how many places there are along each axis.
        pads: how many elements are added before each axis, then after each.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        pads: Sequence[int],
        *,
        ceil: bool = False,
    ) -> None:
        rank = len(sizes)
        self._sizes = sizes
        self.pads = pads
        self.counts: list[int] = []
        self._axes = []
        for at, size in enumerate(sizes):
            reach = (kernel[at] - 1) * dilations[at] + 1
            free = size + pads[at] + pads[at + rank] - reach
            count = (-(-free // strides[at]) if ceil else free // strides[at]) + 1
            if ceil and (count - 1) * strides[at] >= size + pads[at]:
                count -= 1
            count = max(count, 0)
            self.counts.append(count)
            starts = np.arange(count)[:, None] * strides[at] - pads[at]
            index = starts + np.arange(kernel[at]) * dilations[at]
            self._axes.append(np.where((index < 0) | (index >= size), -1, index))

    @cached_property
    def places(self) -> Array:
        """For each place and each element of the kernel its index, -1 for a pad."""
        flat = np.zeros((1, 1), np.int64)
        for size, index in zip(self._sizes, self._axes, strict=True):
            one = flat[:, None, :, None] * size + index[None, :, None, :]
            outside = (flat[:, None, :, None] < 0) | (index[None, :, None, :] < 0)
            one = np.where(outside, -1, one)
            flat = one.reshape(flat.shape[0] * len(index), flat.shape[1] * index.shape[1])
        return flat

    def rows(self, seed: Seed, terms: Array, filler: Array, group: int) -> Array:
        """Return what `listed` makes of the elements of each window over a group of channels.

        Args:
            seed: of the lists.
            terms: [n, channels, *sizes].
            filler: the term of pads.
            group: how many groups of channels there are.

        Returns:
            Terms [n, group, places]; lists are summed element of the kernel by element.
        """
        n, c = terms.shape[:2]
        inner, (places, kernel) = c // group, self.places.shape
        pads = self.places.T < 0
        sums = np.zeros((2, n, group, places), np.uint64)
        odd = odd_numbers(seed, inner * kernel)
        for lane, numbers, made in zip(("a", "b"), odd, sums, strict=True):
            by = numbers.reshape(inner, kernel).T
            grouped = np.ascontiguousarray(terms[lane].reshape(n, group, inner, -1))
            with np.errstate(over="ignore"):
                # What each element of the kernel makes of all channels, at each place of them.
                for at, (row, is_pad) in enumerate(zip(by, pads, strict=True)):
                    read = (row @ grouped)[..., self.places[:, at]]
                    made[...] += np.where(is_pad, filler[lane] * row.sum(), read)
        return mix(seed_of("list", inner * kernel), joined(*sums))

    def lists(self, elements: Array, filler: Array) -> Array:
        """Return the elements of each window, of shape [n, channels, places, kernel]."""
        n, c = elements.shape[:2]
        padded = np.concatenate(
            [elements.reshape(n, c, -1), np.broadcast_to(filler, (n, c, 1))], axis=2
        )
        return padded[:, :, self.places]


def window_of(call: WindowAttributes, shape: Sequence[int], kernel: Sequence[int]) -> KernelWindows:
    """Return the windows of a Conv or a pool over a tensor of shape [n, channels, *sizes]."""
    sizes, rank = shape[2:], len(shape) - 2
    if len(kernel) != rank or 0 in shape:
        raise Unproved(f"{call.op} of an empty tensor, or of another rank than its kernel")
    kernel = call.get("kernel_shape", kernel)
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    pads = list(call.get("pads") or [0] * 2 * rank)
    auto = call.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        low, high = [], []
        for at, size in enumerate(sizes):
            reach = (kernel[at] - 1) * dilations[at] + 1
            total = max((-(-size // strides[at]) - 1) * strides[at] + reach - size, 0)
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
            low.append(first)
            high.append(total - first)
        pads = [*low, *high]
    elif auto == "VALID":
        pads = [0] * 2 * rank
    if min(pads, default=0) < 0:
        raise Unproved(f"{call.op} with negative pads")
    return KernelWindows(
        sizes, kernel, strides, dilations, pads, ceil=bool(call.get("ceil_mode", 0))
    )
