"""Pairs of weights that kernels add in 16 bits: kept so small that no sum of two saturates.

On x86-64 without VNNI onnxruntime multiplies uint8 by int8 and adds two neighbours along the summed
axis in 16 bits. 255 * |q1| + 255 * |q2| is at most 32767 if |q1| + |q2| is at most 128. Few pairs
of 8 bits are larger: these are rounded down, and all other weights keep their 8 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import Node

Array = np.ndarray[Any, Any]

LARGEST_SUM: Final = 128
"""The largest |q1| + |q2| of neighbours: 255 * 128 fits into 16 bits."""


class Order(NamedTuple):
    """An order of the axes of a weight in which the summed elements follow one another.

    Attributes:
        axes: the axes, those that are summed over last.
        kept: how many of them are not summed over.
    """

    axes: tuple[int, ...]
    kept: int


class Neighbours(NamedTuple):
    """The places of the first and of the second element of each pair, in a row of a weight."""

    first: Array
    second: Array


def orders_of(node: Node, slot: int, rank: int) -> list[Order]:
    """Return the orders in which kernels sum over a weight; empty for those that are exact.

    A kernel of a left operand multiplies uint8 by uint8; there is none for ConvTranspose. A Conv
    sums over the channels of each place of its window; the order of the file is kept too.
    """
    axes = tuple(range(rank))
    if node.op_type == "Conv":
        return [Order(axes, 1), Order((0, *axes[2:], 1), 1)]
    if slot != 1 or not rank or node.op_type not in ("Gemm", "MatMul"):
        return []
    if node.attr("transB"):
        return [Order(axes, 1)]
    return [Order((*axes[:-2], *axes[:-3:-1]), rank - 1)]


def neighbours_of(
    shape: Sequence[int], axis: int | None, orders: Sequence[Order]
) -> list[Neighbours]:
    """Return the pairs in each row of a weight: of each index of the axis, or of all.

    Args:
        shape: of the weight.
        axis: along which each index is a row; None for one row.
        orders: of the kernels. With an axis it is the only one that is not summed over.
    """
    found = []
    for order in orders:
        sizes = list(shape)
        if axis is not None:
            sizes[axis] = 1
        moved = np.arange(math.prod(sizes)).reshape(sizes)
        if axis is not None:
            others = [size for at, size in enumerate(shape) if at != axis]
            moved = np.moveaxis(np.arange(math.prod(sizes)).reshape((1, *others)), 0, axis)
        depth = math.prod(sizes[each] for each in order.axes[order.kept :])
        lines = moved.transpose(order.axes).reshape(-1, depth)
        pairs = lines[:, : depth - depth % 2].reshape(-1, 2)
        found.append(Neighbours(pairs[:, 0], pairs[:, 1]))
    return found


def within_pairs(codes: Array, neighbours: Sequence[Neighbours]) -> Array:
    """Return integers, in rows, with both of a pair nearer to 0 by half of what is too much.

    Args:
        codes: whole numbers of at most 127.
        neighbours: the pairs in each row.
    """
    found: Array = codes.copy()
    for first, second in neighbours:
        a, b = found[:, first], found[:, second]
        excess = np.maximum(np.abs(a) + np.abs(b) - LARGEST_SUM, 0)
        half = np.floor(excess / 2)
        found[:, first] = a - np.sign(a) * (excess - half)
        found[:, second] = b - np.sign(b) * half
    return found
