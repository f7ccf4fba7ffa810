"""four_bit_encoder: what it gains on the operand, and when weights are rounded to nearest."""

from typing import Any

import numpy as np
import pytest

from tiered.numerics.precision.few_bits import compensation
from tiered.numerics.precision.few_bits.codes import four_bit_codes
from tiered.numerics.precision.few_bits.compensation import four_bit_encoder
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand

Array = np.ndarray[Any, Any]
FLOAT = np.dtype(np.float32)


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numbers


def directed(rows: int, columns: int, seed: int) -> Array:
    """Return an operand that has almost all of its energy in one direction."""
    numbers: Array = drawn(rows, columns, seed=seed) + 5 * drawn(columns, seed=9)
    return numbers


@pytest.mark.parametrize("columns", [64, 70, 20])
def test_errors_cancel_on_rows_that_it_has_not_seen(columns: int) -> None:
    weight, other = drawn(16, columns), directed(50, columns, 3)
    operand = WeightOperand(directed(96, columns, 1), directed(32, columns, 2))
    encode = four_bit_encoder(weight, 32, FLOAT, operand)
    assert encode is not None
    codes, nearest = encode(weight, 32, FLOAT), four_bit_codes(weight, 32, FLOAT)
    assert (codes.codes.dtype, codes.codes.shape) == (nearest.codes.dtype, nearest.codes.shape)
    assert codes.zeros is not None
    assert codes.scales.shape == codes.zeros.shape == nearest.scales.shape
    assert 0 <= codes.codes.astype(int).min() <= codes.codes.astype(int).max() <= 15
    errors = [np.linalg.norm(other @ (each.numbers(32) - weight).T) for each in (codes, nearest)]
    assert errors[0] < errors[1] / 2


def test_scales_have_the_dtype_of_the_weight() -> None:
    weight = drawn(16, 64).astype(np.float16)
    operand = WeightOperand(directed(96, 64, 1), directed(32, 64, 2))
    encode = four_bit_encoder(weight, 32, weight.dtype, operand)
    assert encode is not None
    assert encode(weight.astype(np.float32), 32, weight.dtype).scales.dtype == np.float16


def test_an_operand_without_a_direction_gains_nothing() -> None:
    operand = WeightOperand(drawn(96, 64, seed=1), drawn(32, 64, seed=2))
    assert four_bit_encoder(drawn(16, 64), 32, FLOAT, operand) is None


def test_an_operand_of_zeros_gains_nothing() -> None:
    zeros = np.zeros((8, 64), np.float32)
    assert four_bit_encoder(drawn(16, 64), 32, FLOAT, WeightOperand(zeros, zeros)) is None


def test_a_weight_that_is_exact_stays_exact() -> None:
    weight = np.tile(np.arange(16, dtype=np.float32), (4, 4))
    operand = WeightOperand(directed(96, 64, 1), directed(32, 64, 2))
    assert four_bit_encoder(weight, 32, FLOAT, operand) is None


def test_a_weight_that_is_not_finite_is_left() -> None:
    weight = drawn(16, 64)
    weight[0, 3] = np.inf
    operand = WeightOperand(directed(96, 64, 1), directed(32, 64, 2))
    assert four_bit_encoder(weight, 32, FLOAT, operand) is None


def test_many_columns_would_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    operand = WeightOperand(directed(96, 64, 1), directed(32, 64, 2))
    for most, is_small in ((63, False), (64, True)):
        monkeypatch.setattr(compensation, "MOST_COLUMNS", most)
        found = four_bit_encoder(drawn(16, 64), 32, FLOAT, operand)
        assert (found is not None) == is_small
