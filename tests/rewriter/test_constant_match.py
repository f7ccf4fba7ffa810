"""Which numbers of a constant are those that a pattern names."""

import numpy as np
import pytest

from tiered.rewriter.constant_match import is_near, is_number, is_same

FLOAT, HALF = np.float32, np.float16


@pytest.mark.parametrize(
    ("got", "number", "rtol", "expected"),
    [
        (FLOAT(0.1), 0.1, 0, True),
        (np.float64(FLOAT(0.1)), 0.1, 0, False),
        (FLOAT(0.0), -0.0, 0, False),
        (FLOAT(-0.0), -0.0, 0, True),
        (FLOAT(-0.0), -0.0, 1e-3, True),
        (FLOAT(1.01), 1.0, 1e-3, False),
        (FLOAT(1.0625), 1.0, 0.0625, True),
        (FLOAT(-1.0625), -1.0, 0.0625, True),
        (FLOAT(0.5), 1.0, 0.25, False),
    ],
)
def test_one_float_is_a_number_as_its_dtype_has_it(
    got: np.floating, number: float, rtol: float, expected: bool
) -> None:
    assert is_number(np.array(got), number, rtol) is expected


def test_floats_are_near_numbers_as_their_dtype_has_them() -> None:
    for got, wanted, rtol, expected in (
        ([1.0, 2.0], [1.0, 2.0], 0, True),
        ([1.0, 2.0], [1.0, 2.5], 0.1, False),
        ([1.0, 2.25], [1.0, 2.0], 0.125, True),
        ([1e-9], [0.0], 0.1, False),
    ):
        assert is_near(np.array(got, FLOAT), np.array(wanted), rtol) is expected
    assert is_near(np.array(2**0.5, HALF), np.array(2**0.5), 0)


@pytest.mark.parametrize(
    ("got", "wanted", "expected"),
    [
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array(0), np.array(0.5), False),
        (np.array(44, np.uint8), np.array(300), False),
        (np.array(True), np.array(2), False),
        (np.array(True), np.array(1), True),
        (np.array(1.0), np.array(1 + 2j), False),
        (np.array(1 + 2j), np.array(1 + 2j), True),
        (np.array(1 + 2j), np.array(1), False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([np.nan]), np.array([-np.nan]), True),
        (np.array(0.0), np.array(-0.0), False),
        (np.array([-0.0, 0.0]), np.array([-0.0, 0.0]), True),
        (np.array(0.1, FLOAT), np.array(0.1), True),
        (np.array(0.2, FLOAT), np.array(0.1), False),
    ],
)
def test_arrays_are_the_same_if_each_number_is(
    got: np.ndarray, wanted: np.ndarray, expected: bool
) -> None:
    assert is_same(got, wanted) is expected
