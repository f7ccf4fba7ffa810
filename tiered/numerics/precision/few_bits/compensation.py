"""Four bits, rounded so that the errors of a layer cancel on the operands of samples.

Columns of a weight are rounded one after the other. The error of each is spread over the columns
that are not rounded yet, so that the output for the operands changes least.

Source: Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization", algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tiered.numerics.precision.few_bits.codes import Codes, FourBits, four_bit_codes
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand

Array = np.ndarray[Any, Any]
Encode = Callable[[Array, int, np.dtype[Any]], Codes]

MOST_COLUMNS: Final = 4096
"""The second moments of 4,096 columns take 128 MiB, the work with them 0.9 GiB."""

_DAMPINGS: Final = (10.0, 1.0, 0.1, 0.01)
"""Added to the second moments, in parts of their mean; the fewer the samples, the more pays."""

_LEAST_GAIN: Final = 0.97
"""Errors are compensated if that lowers the error on rows that were held back to this part."""

_CHOSEN_BY: Final = 256
"""Rows of a weight that the damping is chosen by."""


def four_bit_encoder(
    weight: Array, block: int, dtype: np.dtype[Any], operand: WeightOperand
) -> Encode | None:
    """Return what encodes the rows of a weight for an operand; None to round to nearest.

    Dampings are tried on some rows of the weight, from the strongest on, until the error on the
    rows of the operand that were held back rises. The last but one is taken, if it is better than
    rounding to nearest.

    Args:
        weight: float [channels, columns].
        block: the columns that share a scale and a zero point.
        dtype: that of the scales.
        operand: what the weight is multiplied by.
    """
    step = -(-len(weight) // _CHOSEN_BY)
    rows = np.ascontiguousarray(weight[::step], np.float32)
    if rows.shape[1] > MOST_COLUMNS or not np.isfinite(rows).all() or not operand.fitted.any():
        return None
    moments = _moments(operand.fitted)

    def error(codes: Codes) -> float:
        return float(np.linalg.norm(operand.held @ (codes.numbers(block) - rows).T))

    least, chosen = math.inf, 0.0
    for damping in _DAMPINGS:
        found = error(_compensated(rows, block, dtype, _factor(moments, damping)))
        if not found < least:
            break
        least, chosen = found, damping
    if not least < _LEAST_GAIN * error(four_bit_codes(rows, block, dtype)):
        return None
    factor = _factor(moments + _moments(operand.held), chosen)
    return lambda rows, block, dtype: _compensated(rows, block, dtype, factor)


def _moments(rows: Array) -> Array:
    """Return the second moments of columns, float64 [columns, columns]."""
    wide = rows.astype(np.float64)
    moments: Array = wide.T @ wide
    return moments


def _factor(moments: Array, damping: float) -> Array:
    """Return the upper triangular factor of the inverse of damped moments."""
    damped = moments.copy()
    damped.flat[:: len(moments) + 1] += damping * np.trace(moments) / len(moments)
    inverse = np.linalg.inv(damped)
    del damped  # as large as the inverse
    factor: Array = np.linalg.cholesky(inverse).T  # reads the lower triangle only
    return factor


def _compensated(rows: Array, block: int, dtype: np.dtype[Any], factor: Array) -> Codes:
    """Return codes, each column rounded after the errors of those before it are spread.

    Args:
        rows: float32 [channels, columns].
        block: the columns that share a scale and a zero point, those of the smallest squared error
            when the first of them is rounded.
        dtype: that of the scales.
        factor: U with U^T U the inverse of the second moments of the operand. Spreading the error
            of column i adds -error / U[i,i] * U[i,j] to column j.
    """
    left = rows.T.astype(np.float64)
    codes = np.empty(left.shape, np.uint8)
    scales, zeros = list[Array](), list[Array]()
    for start in range(0, len(left), block):
        end = min(start + block, len(left))
        best = FourBits.of(left[start:end].T[:, None].astype(np.float32), dtype)
        scale, zero = best.scales[:, 0], best.zeros[:, 0]
        errors = np.empty((end - start, left.shape[1]))
        for at in range(start, end):
            code = np.clip(np.rint(left[at] / scale) + zero, 0, 15)
            codes[at] = code
            error = (left[at] - (code - zero) * scale) / factor[at, at]
            left[at + 1 : end] -= np.outer(factor[at, at + 1 : end], error)
            errors[at - start] = error
        left[end:] -= factor[start:end, end:].T @ errors
        scales.append(scale)
        zeros.append(zero)
    return Codes.of_four_bits(codes.T, np.stack(scales, 1), np.stack(zeros, 1), dtype)
