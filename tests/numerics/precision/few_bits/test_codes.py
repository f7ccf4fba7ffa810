"""Codes of a weight in few bits: near the numbers, by block, and none better for the tried."""

import numpy as np
import pytest

from tiered.graph import DataType
from tiered.numerics.precision.few_bits.codes import (
    Codes,
    FourBits,
    float8_codes,
    four_bit_codes,
    signed_codes,
)

FLOAT = np.dtype(np.float32)
ROWS = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32)


def test_signed_codes_are_within_half_a_scale_and_the_largest_is_exact() -> None:
    codes = signed_codes(ROWS, 4, FLOAT)
    assert codes.codes.shape == (3, 10)
    assert codes.scales.shape == (3, 3)
    assert codes.zeros is None
    assert int(np.abs(codes.codes.astype(np.int64)).max()) == 127
    half = np.repeat(codes.scales, 4, 1)[:, :10] / 2
    assert (np.abs(codes.numbers(4) - ROWS) <= half * 1.0001).all()


def test_a_block_of_zeros_has_a_scale_of_1() -> None:
    rows = np.zeros((1, 8), np.float32)
    rows[0, 5] = 3
    for codes in (
        signed_codes(rows, 4, FLOAT),
        float8_codes(rows, 4, FLOAT, DataType.FLOAT8E4M3FN, None),
    ):
        assert codes.scales[0, 0] == 1
        np.testing.assert_array_equal(codes.numbers(4), rows)
    np.testing.assert_allclose(four_bit_codes(rows, 4, FLOAT).numbers(4), rows, rtol=1e-6)


def test_scales_that_halves_lose_are_1() -> None:
    rows = np.full((1, 4), 1e-9, np.float32)
    assert signed_codes(rows, 4, np.dtype(np.float16)).scales.tolist() == [[1]]


@pytest.mark.parametrize("low", [DataType.FLOAT8E4M3FN, DataType.FLOAT8E5M2])
def test_the_largest_magnitude_is_the_largest_number_of_float8(low: DataType) -> None:
    codes = float8_codes(ROWS, 10, FLOAT, low, None)
    largest = np.abs(codes.codes.astype(np.float32)).max(1)
    assert largest.tolist() == [float(np.abs(codes.codes.astype(np.float32)).max())] * 3
    np.testing.assert_allclose(codes.numbers(10), ROWS, rtol=0.13, atol=0.01)


def test_an_exponent_replaces_the_scale_and_numbers_beyond_are_clipped() -> None:
    rows = np.array([[1000.0, 2.0]], np.float32)
    codes = float8_codes(rows, 2, FLOAT, DataType.FLOAT8E4M3FN, -1)
    assert codes.scales.tolist() == [[0.5]]
    assert codes.codes.astype(np.float32).tolist() == [[448, 4]]
    assert codes.numbers(2).tolist() == [[224, 2]]


def test_four_bits_are_exact_where_sixteen_steps_are_enough() -> None:
    rows = (np.arange(16, dtype=np.float32)[None] - 5) * 0.25
    codes = four_bit_codes(rows, 16, FLOAT)
    np.testing.assert_allclose(codes.numbers(16), rows, atol=1e-6)
    assert codes.codes.dtype == DataType.UINT4.numpy
    assert codes.zeros is not None
    assert codes.zeros.astype(np.int64).tolist() == [[5]]


def _error(codes: Codes, rows: np.ndarray, block: int) -> float:
    return float(np.square(codes.numbers(block) - rows).sum())


def test_four_bits_have_no_larger_error_than_the_range_from_least_to_largest() -> None:
    for seed in range(20):
        rows = np.random.default_rng(seed).normal(size=(1, 16)).astype(np.float32)
        low, high = min(rows.min(), 0), max(rows.max(), 0)
        scale = np.float32((high - low) / 15)
        zero = np.clip(np.rint(-low / scale), 0, 15)
        plain = np.clip(np.rint(rows / scale) + zero, 0, 15)
        naive = Codes.of_four_bits(plain, np.array([[scale]]), np.array([[zero]]), FLOAT)
        assert _error(four_bit_codes(rows, 16, FLOAT), rows, 16) <= _error(naive, rows, 16) + 1e-6


def test_an_attempt_is_taken_only_where_it_is_better() -> None:
    parts = np.array([[[0, 1, 2, 3], [0, 2, 4, 6]]], np.float32)
    best = FourBits(parts, FLOAT)
    best.attempt(np.array([[1, 1]], np.float32), np.zeros((1, 2), np.float32))
    assert best.scales.tolist() == [[1, 1]]
    best.attempt(np.array([[3, 2]], np.float32), np.zeros((1, 2), np.float32))
    assert best.scales.tolist() == [[1, 1]]
    assert best.codes().tolist() == [[[0, 1, 2, 3], [0, 2, 4, 6]]]
    assert best.fitted_scales().tolist() == [[1, 1]]


def test_a_ragged_last_block_has_its_own_scale() -> None:
    rows = np.array([[1, 1, 1, 1, 8]], np.float32)
    for codes in (signed_codes(rows, 4, FLOAT), four_bit_codes(rows, 4, FLOAT)):
        assert codes.scales.shape == (1, 2)
        assert codes.codes.shape == (1, 5)
        np.testing.assert_allclose(codes.numbers(4), rows, rtol=1e-5)


def test_whole_numbers_have_their_own_codes() -> None:
    def rows(*numbers: float) -> np.ndarray:
        return np.array([numbers], np.float32)

    signed = signed_codes(rows(127, -127, 64, 1, -3, 254, -254), 4, FLOAT)
    assert signed.codes.tolist() == [[127, -127, 64, 1, -2, 127, -127]]
    assert signed.scales.tolist() == [[1, 2]]
    for low, zero in ((0, 0), (-8, 8), (-7, 7), (-15, 15)):
        found = four_bit_codes(rows(*range(low, low + 16)), 16, FLOAT)
        assert found.codes.astype(int).tolist() == [[*range(16)]]
        assert found.scales.tolist() == [[1]]
        assert found.zeros is not None
        assert found.zeros.astype(int).tolist() == [[zero]]
