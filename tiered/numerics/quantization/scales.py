"""Scales and zero points: finite, never 0, and with 0 on the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import DataType
from tiered.graph.core.dtypes import integer_info
from tiered.numerics.quantization.scheme import Scheme
from tiered.numerics.quantization.weight_pairs import Neighbours, Order, neighbours_of, within_pairs

Array = np.ndarray[Any, Any]

LEAST: Final = float(2.0**-126)
"""The least normal number of float32: kernels may flush smaller ones to 0."""

_LARGEST_BIAS: Final = float(np.iinfo(np.int32).max) / 2
_SHARES: Final = tuple(1 - step / 50 for step in range(16))
"""The parts of a channel's largest magnitude that are tried as the end of its range."""


_ROOMIER: Final = tuple(1 + step / 8 for step in range(1, 9))
"""More of them, where pairs are limited: at twice the largest magnitude each pair fits."""


class Parameters(NamedTuple):
    """The scale and the zero point of data."""

    scale: float
    zero: int
    dtype: DataType

    def holds(self, low: float, high: float) -> bool:
        """Return whether both ends of a range are less than one step beyond the codes."""
        limits = integer_info(self.dtype.numpy)
        least, most = ((int(end) - self.zero) * self.scale for end in (limits.min, limits.max))
        return least - self.scale <= low and high <= most + self.scale

    def codes(self, array: Array) -> Array:
        """Return the integers of numbers, in the dtype of these."""
        limits = integer_info(self.dtype.numpy)
        codes: Array = np.rint(array / np.float32(self.scale)) + self.zero
        return np.clip(codes, limits.min, limits.max)

    def rounded(self, array: Array) -> Array:
        """Return numbers as they are after quantisation, in float32."""
        codes = self.codes(array)
        numbers: Array = ((codes - self.zero) * np.float32(self.scale)).astype(np.float32)
        return numbers


class Weight(NamedTuple):
    """A weight in integers.

    Attributes:
        codes: the integers.
        scales: one, or one for each index of the axis.
        zeros: as many zero points.
        axis: None for one scale.
    """

    codes: Array
    scales: Array
    zeros: Array
    axis: int | None


def parameters_of(low: float, high: float, scheme: Scheme) -> Parameters:
    """Return the scale and the zero point for a finite range, which is extended to have 0."""
    limits = integer_info(scheme.activations.numpy)
    if scheme.symmetric:
        reach = (int(limits.max) - int(limits.min)) // 2
        middle = 0 if int(limits.min) < 0 else int(limits.max) // 2 + 1
        return Parameters(usable_scale(max(high, -low) / reach), middle, scheme.activations)
    return Parameters(*affine_of(low, high, int(limits.min), int(limits.max)), scheme.activations)


def affine_of(low: float, high: float, least: int, greatest: int) -> tuple[float, int]:
    """Return the scale and the zero point that map a range, extended to have 0, to codes."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = usable_scale((high - low) / (greatest - least))
    return scale, int(np.clip(np.rint(least - low / scale), least, greatest))


def usable_scale(scale: float) -> float:
    """Return a scale as float32 that is finite and normal; 1 for a range of zeros."""
    if scale <= 0:
        return 1.0
    return float(np.clip(np.float32(scale), np.float32(LEAST), np.finfo(np.float32).max))


def weight_of(
    array: Array,
    axis: int | None,
    scheme: Scheme,
    *,
    unsigned: bool = False,
    least: Array | None,
    orders: Sequence[Order] = (),
) -> Weight | None:
    """Return a weight in integers, symmetric about 0, with the least squared error.

    A channel of zeros takes the scale of the whole tensor.

    Args:
        array: the weight.
        axis: along which each index has its scale; None for one scale.
        scheme: of the target.
        unsigned: integers from 0 on, with a zero point in the middle.
        least: the least scales, which a bias needs.
        orders: those in which kernels add pairs that must not saturate.

    Returns:
        None if a number is not finite.
    """
    if not np.isfinite(array).all():
        return None
    bits = scheme.weights.bits - scheme.reduce_range
    reach = (1 << (bits - 1)) - 1
    rows = array.astype(np.float32).reshape(1, -1)
    if axis is not None:
        rows = np.moveaxis(array.astype(np.float32), axis, 0).reshape(array.shape[axis], -1)
    neighbours = neighbours_of(array.shape, axis, orders)
    scales = _least_squares(rows, reach, neighbours)
    if least is not None:
        scales = np.maximum(scales, least)
    codes = _codes(rows, scales, reach, neighbours)
    middle = 1 << (scheme.weights.bits - 1) if unsigned else 0
    dtype = _unsigned(scheme.weights) if unsigned else scheme.weights
    integers = (codes + middle).astype(dtype.numpy)
    shaped = integers.reshape(array.shape)
    if axis is not None:
        order = (array.shape[axis], *np.delete(array.shape, axis).tolist())
        shaped = np.ascontiguousarray(np.moveaxis(integers.reshape(order), 0, axis))
    form = scales if axis is not None else scales.reshape(())
    return Weight(shaped, form, np.full(form.shape, middle, dtype.numpy), axis)


def _unsigned(dtype: DataType) -> DataType:
    return DataType.UINT16 if dtype == DataType.INT16 else DataType.UINT8


def _codes(rows: Array, scales: Array, reach: int, neighbours: Sequence[Neighbours]) -> Array:
    """Return the integers of rows, which are within the limits of their pairs."""
    codes: Array = np.clip(np.rint(rows / scales[:, None]), -reach, reach)
    return within_pairs(codes, neighbours) if neighbours else codes


def _least_squares(rows: Array, reach: int, neighbours: Sequence[Neighbours]) -> Array:
    """Return the scale of each row with the least squared error of its rounded numbers."""
    largest = np.abs(rows).max(1)
    whole = float(largest.max())
    largest = np.where(largest > 0, largest, whole if whole > 0 else np.float32(reach))
    best, found = np.full(len(rows), np.inf), largest / reach
    for share in (*_SHARES, *_ROOMIER) if neighbours else _SHARES:
        scales = np.maximum(largest * np.float32(share) / reach, np.float32(LEAST))
        codes = _codes(rows, scales, reach, neighbours)
        errors = np.square(codes * scales[:, None] - rows, dtype=np.float64).sum(1)
        better = errors < best
        best, found = np.where(better, errors, best), np.where(better, scales, found)
    return np.maximum(found, np.float32(LEAST)).astype(np.float32)


def least_scales(bias: Array, data: float) -> Array:
    """Return the scales that a weight needs at least, so that its bias fits into int32."""
    scales = np.abs(bias.astype(np.float64)) / (data * _LARGEST_BIAS)
    return np.minimum(scales, np.finfo(np.float32).max / max(data, 1.0)).astype(np.float32)


def bias_of(bias: Array, data: float, scales: Array) -> tuple[Array, Array]:
    """Return a bias as int32, and its scales: those of the data times those of the weight."""
    steps = np.broadcast_to((np.float32(data) * scales).astype(np.float32), bias.shape)
    steps = np.maximum(steps, np.float32(LEAST))
    limits = np.iinfo(np.int32)
    codes = np.clip(np.rint(bias.astype(np.float64) / steps), limits.min, limits.max)
    return codes.astype(np.int32), np.ascontiguousarray(steps)
