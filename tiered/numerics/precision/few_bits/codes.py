"""Codes: the numbers of a weight in few bits, with a scale for each channel or block."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import DataType
from tiered.graph.core.dtypes import float_info

Array = np.ndarray[Any, Any]

FLOAT8: Final = {
    "E4M3FN": DataType.FLOAT8E4M3FN,
    "E4M3FNUZ": DataType.FLOAT8E4M3FNUZ,
    "E5M2": DataType.FLOAT8E5M2,
    "E5M2FNUZ": DataType.FLOAT8E5M2FNUZ,
    "F143": DataType.FLOAT8E4M3FNUZ,
    "F152": DataType.FLOAT8E5M2FNUZ,
}
"""The formats of float8 by name; Graphcore's F143 and F152 have no -0 and no Inf."""

_SHARES: Final = tuple(1 - step / 40 for step in range(14))
"""The parts of a range of a block that are tried as its limits; what is outside is clipped."""


_FITS: Final = 3
"""How often a scale is fitted to codes, and codes are rounded again."""


class Codes(NamedTuple):
    """The codes of some rows, and what they stand for: (codes - zeros) * scales.

    Attributes:
        codes: [rows, columns].
        scales: [rows, blocks], in the dtype of the weight.
        zeros: [rows, blocks], or None for 0.
    """

    codes: Array
    scales: Array
    zeros: Array | None

    @classmethod
    def of_four_bits(cls, codes: Array, scales: Array, zeros: Array, dtype: np.dtype[Any]) -> Codes:
        """Return codes and zero points from 0 to 15 as uint4, and scales in a dtype."""
        numbers = DataType.UINT4.numpy
        return cls(
            codes.astype(np.uint8).astype(numbers),
            scales.astype(dtype),
            zeros.astype(np.uint8).astype(numbers),
        )

    def numbers(self, block: int) -> Array:
        """Return the numbers that the codes stand for, in float32."""
        columns = self.codes.shape[1]
        codes = self.codes.astype(np.float32)
        scales = np.repeat(self.scales.astype(np.float32), block, 1)[:, :columns]
        if self.zeros is not None:
            codes = codes - np.repeat(self.zeros.astype(np.float32), block, 1)[:, :columns]
        return codes * scales


def _blocks(rows: Array, block: int) -> Array:
    """Return rows in blocks, [rows, blocks, block]; a ragged last one is filled with zeros."""
    count = -(-rows.shape[1] // block)
    filled = np.zeros((rows.shape[0], count * block), np.float32)
    filled[:, : rows.shape[1]] = rows
    return filled.reshape(rows.shape[0], count, block)


def _usable(scales: Array, dtype: np.dtype[Any]) -> Array:
    """Return scales as their dtype stores them; 1 for a block of zeros."""
    with np.errstate(over="ignore", under="ignore"):
        stored = scales.astype(dtype).astype(np.float32)
    return np.where(stored > 0, stored, np.float32(1))


def signed_codes(rows: Array, block: int, dtype: np.dtype[Any]) -> Codes:
    """Return codes from -127 to 127; the largest magnitude of a block is 127 scales."""
    parts = _blocks(rows, block)
    scales = _usable(np.abs(parts).max(2) / np.float32(127), dtype)
    codes = np.clip(np.rint(parts / scales[..., None]), -127, 127).astype(np.int8)
    return Codes(_rows(codes, rows), scales.astype(dtype), None)


def float8_codes(
    rows: Array, block: int, dtype: np.dtype[Any], low: DataType, exponent: int | None
) -> Codes:
    """Return float8 numbers; the largest magnitude of a block is the largest number of the type.

    Args:
        rows: the numbers.
        block: the numbers of a row that share a scale.
        dtype: that of the scales.
        low: the type of float8.
        exponent: the scale is 2 to this power, if it is given.
    """
    parts = _blocks(rows, block)
    limit = np.float32(float_info(low.numpy).max)
    scales = _usable(np.abs(parts).max(2) / limit, dtype)
    if exponent is not None:
        scales = np.full_like(scales, 2.0**exponent)
    numbers = np.clip(parts / scales[..., None], -limit, limit).astype(low.numpy)
    return Codes(_rows(numbers, rows), scales.astype(dtype), None)


def four_bit_codes(rows: Array, block: int, dtype: np.dtype[Any]) -> Codes:
    """Return codes from 0 to 15 and zero points, with the smallest squared error of a block."""
    best = FourBits.of(_blocks(rows, block), dtype)
    return Codes.of_four_bits(_rows(best.codes(), rows), best.scales, best.zeros, dtype)


class FourBits:
    """The best scales and zero points of some blocks so far.

    Attributes:
        scales, zeros: float32 [rows, blocks].
    """

    @classmethod
    def of(cls, parts: Array, dtype: np.dtype[Any]) -> FourBits:
        """Return the scales and zero points of the smallest squared error.

        Tried are ranges from the least to the largest number, and parts of them; and those where
        the number of the largest magnitude is exact. The best scale is then fitted to its codes.

        Args:
            parts: float32 [rows, blocks, columns].
            dtype: that of the scales.
        """
        low, high = np.minimum(parts.min(2), 0), np.maximum(parts.max(2), 0)
        width, largest = high - low, np.maximum(high, -low)
        candidates = [(width * (share / 15), low * share) for share in _SHARES]
        steps = np.where(high >= -low, np.float32(-7), np.float32(-8))
        candidates.append((largest / 8, steps * largest / 8))
        best = cls(parts, dtype)
        for step, least in candidates:
            scale = _usable(step, dtype)
            best.attempt(scale, np.clip(np.rint(-least / scale), 0, 15))
        for _ in range(_FITS):
            best.attempt(_usable(best.fitted_scales(), dtype), best.zeros)
        return best

    def __init__(self, parts: Array, dtype: np.dtype[Any]) -> None:
        self._parts = parts
        self._error = np.full(parts.shape[:2], np.inf, np.float32)
        self.scales = _usable(np.ones(parts.shape[:2], np.float32), dtype)
        self.zeros = np.zeros(parts.shape[:2], np.float32)

    def attempt(self, scales: Array, zeros: Array) -> None:
        """Take scales and zero points where they have a smaller squared error."""
        found = self._multiples(scales, zeros)
        found *= scales[..., None]
        found -= self._parts
        error = np.square(found, out=found).sum(2)
        is_better = error < self._error
        self._error = np.where(is_better, error, self._error)
        self.scales = np.where(is_better, scales, self.scales)
        self.zeros = np.where(is_better, zeros, self.zeros)

    def fitted_scales(self) -> Array:
        """Return the scales of the smallest squared error for the present codes."""
        multiples = self._multiples(self.scales, self.zeros)
        norm = np.square(multiples).sum(2)
        fitted: Array = (multiples * self._parts).sum(2) / np.where(norm > 0, norm, 1)
        return fitted

    def codes(self) -> Array:
        """Return the codes."""
        codes: Array = self._multiples(self.scales, self.zeros) + self.zeros[..., None]
        return codes

    def _multiples(self, scales: Array, zeros: Array) -> Array:
        codes: Array = self._parts / scales[..., None]
        np.rint(codes, out=codes)
        codes += zeros[..., None]
        np.clip(codes, 0, 15, out=codes)
        codes -= zeros[..., None]
        return codes


def _rows(parts: Array, rows: Array) -> Array:
    return parts.reshape(rows.shape[0], -1)[:, : rows.shape[1]]
