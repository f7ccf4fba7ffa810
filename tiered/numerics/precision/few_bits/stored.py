"""A weight in few bits: its codes and scales."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import Tensor, Value
from tiered.numerics.precision.few_bits.formats import WeightFormat
from tiered.numerics.precision.few_bits.readers import WeightReader
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand
from tiered.support.numerics import decibels

Array = np.ndarray[Any, Any]

_AT_ONCE: Final = 1 << 18
"""So many numbers of a weight are converted together: as many as a cache holds."""

_FITTED_AT_ONCE: Final = 1 << 22
"""As many if columns are rounded one after the other, so that a column is long."""


class Stored(NamedTuple):
    """A weight in few bits: codes and scales in the order of its axes, or flat.

    Attributes:
        codes: as the weight, or [channels, the rest] for blocks of a kernel.
        scales, zeros: a number for each channel or block.
        axis: of the DequantizeLinear.
        shape: what the result is reshaped to, if that is needed.
        quality: the signal to noise ratio, in dB.
        is_fitted: whether it is rounded for an operand.
    """

    codes: Array
    scales: Array
    zeros: Array | None
    axis: int
    shape: tuple[int, ...] | None
    quality: float
    is_fitted: bool

    @property
    def nbytes(self) -> int:
        """The bytes in a file."""
        arrays = [each for each in (self.codes, self.scales, self.zeros) if each is not None]
        return sum(Tensor(None, each).nbytes for each in arrays)


class Encoded(dict[Value, "Stored | None"]):
    """The codes of weights; None for one that has NaN or Inf."""


def encoded(
    weight: Array, reader: WeightReader, form: WeightFormat, operand: WeightOperand | None
) -> Stored | None:
    """Return a weight in few bits; None if a number is not finite."""
    channel = reader.channel
    if form.block and weight.ndim > 2 and channel == weight.ndim - 1:
        matrix = weight.reshape(-1, weight.shape[channel])
        stored = encoded(matrix, reader._replace(channel=1), form, operand)
        return None if stored is None else stored._replace(shape=weight.shape)
    channels = weight.shape[channel]
    columns = weight.size // channels
    block = form.block or columns
    rows = np.moveaxis(weight, channel, 0)
    fitted = None
    if form.fit is not None and operand is not None:
        fitted = form.fit(rows, block, weight.dtype, operand)
    step = max((_FITTED_AT_ONCE if fitted else _AT_ONCE) // columns, 1)
    encode = fitted or form.encode(reader.node)
    is_turned = weight.ndim == 2 and channel == 1
    codes, by_row = _arrays(weight, channel, form, is_turned=is_turned)
    scale_parts, zero_parts = list[Array](), list[Array]()
    signal = noise = 0.0
    for start in range(0, channels, step):
        part = rows[start : start + step].astype(np.float32).reshape(-1, columns)
        if not np.isfinite(part).all():
            return None
        found = encode(part, block, weight.dtype)
        by_row[start : start + step] = found.codes.reshape(-1, *by_row.shape[1:])
        scale_parts.append(found.scales)
        zero_parts += [] if found.zeros is None else [found.zeros]
        signal += float(np.square(part, dtype=np.float64).sum())
        noise += float(np.square(found.numbers(block) - part, dtype=np.float64).sum())
    scales = np.concatenate(scale_parts)
    joined = np.concatenate(zero_parts) if zero_parts else None
    judged = (decibels(signal, noise), fitted is not None)
    if not form.block:
        return Stored(codes, scales[:, 0], joined, channel, None, *judged)
    if is_turned:
        turned = None if joined is None else np.ascontiguousarray(joined.T)
        return Stored(codes, np.ascontiguousarray(scales.T), turned, 0, None, *judged)
    shape = None if weight.ndim == 2 else weight.shape
    return Stored(codes, scales, joined, 1, shape, *judged)


def _arrays(
    weight: Array, channel: int, form: WeightFormat, *, is_turned: bool
) -> tuple[Array, Array]:
    """Return the array of all codes as it is stored, and a view of it by channels."""
    channels, dtype = weight.shape[channel], form.dtype.numpy
    if not form.block:
        codes = np.empty(weight.shape, dtype)
        return codes, np.moveaxis(codes, channel, 0)
    columns = weight.size // channels
    codes = np.empty((columns, channels) if is_turned else (channels, columns), dtype)
    return codes, codes.T if is_turned else codes
