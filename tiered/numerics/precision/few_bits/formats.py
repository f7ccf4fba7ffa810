"""How weights are stored in few bits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from tiered.graph import DataType, Node
from tiered.numerics.precision.few_bits.codes import float8_codes, four_bit_codes, signed_codes
from tiered.numerics.precision.few_bits.compensation import Encode, four_bit_encoder
from tiered.numerics.precision.few_bits.exponents import MEASURED, Exponents
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand

Array = np.ndarray[Any, Any]


class WeightFormat(NamedTuple):
    """How weights are stored.

    Attributes:
        dtype: that of the codes.
        opset: the first one whose DequantizeLinear takes it.
        block: the numbers that share a scale; 0 for a scale for each channel.
        encode: returns what encodes the rows of a weight that a node reads.
        fit: returns what does so for rows that are multiplied by an operand; None for `encode`.
    """

    dtype: DataType
    opset: int
    block: int
    encode: Callable[[Node], Encode]
    fit: Callable[[Array, int, np.dtype[Any], WeightOperand], Encode | None] | None = None


def int8_format(block: int) -> WeightFormat:
    """Return int8, symmetric."""
    return WeightFormat(DataType.INT8, 21 if block else 13, block, lambda node: signed_codes)


def int4_format(block: int) -> WeightFormat:
    """Return uint4 with zero points, in blocks."""
    encode = four_bit_codes
    return WeightFormat(DataType.UINT4, 21, block, lambda node: encode, four_bit_encoder)


def float8_format(low: DataType, exponents: Exponents = MEASURED) -> WeightFormat:
    """Return a float8 type, with a scale for each channel, or with powers of two."""

    @cache
    def encoder(exponent: int | None) -> Encode:
        return partial(float8_codes, low=low, exponent=exponent)

    return WeightFormat(low, 19, 0, lambda node: encoder(exponents.for_node(node)))
