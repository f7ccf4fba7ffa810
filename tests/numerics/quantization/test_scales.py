"""Scales are finite and positive, 0 is on the grid, and errors are at most half a step."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tiered import DataType
from tiered.numerics.quantization.scales import (
    LEAST,
    Parameters,
    bias_of,
    least_scales,
    parameters_of,
    usable_scale,
    weight_of,
)
from tiered.numerics.quantization.scheme import Scheme

SCHEMES = [
    Scheme(),
    Scheme(activations=DataType.INT8),
    Scheme(activations=DataType.INT8, symmetric=True),
    Scheme(activations=DataType.UINT8, symmetric=True),
    Scheme(activations=DataType.UINT16),
]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(ends=st.tuples(*[st.floats(-1e30, 1e30)] * 2))
def test_zero_is_on_the_grid(scheme: Scheme, ends: tuple[float, float]) -> None:
    found = parameters_of(min(ends), max(ends), scheme)
    assert np.isfinite(found.scale)
    assert found.scale >= LEAST
    assert found.rounded(np.zeros(1, np.float32))[0] == 0
    limits = np.iinfo(scheme.activations.numpy)
    assert limits.min <= found.zero <= limits.max


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("ends", [(-1.0, 3.0), (0.0, 5.0), (-7.0, -1.0), (2.0, 2.0)])
def test_numbers_of_the_range_move_by_half_a_step(
    scheme: Scheme, ends: tuple[float, float]
) -> None:
    found = parameters_of(*ends, scheme)
    numbers = np.linspace(*ends, 1001, dtype=np.float32)
    # The ends themselves may move by another half, as the zero point is rounded.
    assert np.abs(found.rounded(numbers) - numbers).max() <= 1.001 * found.scale


def test_a_range_of_zeros_has_the_scale_one() -> None:
    assert parameters_of(0.0, 0.0, Scheme()).scale == 1.0


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_a_weight_is_no_worse_than_by_its_largest_number(
    axis: int | None, reduce_range: bool
) -> None:
    array = np.random.default_rng(0).standard_normal((6, 5, 40)).astype(np.float32)
    found = weight_of(array, axis, Scheme(reduce_range=reduce_range), least=None)
    assert found is not None
    reach = 63 if reduce_range else 127
    assert np.abs(found.codes.astype(int)).max() <= reach
    shape = [1, 1, 1]
    if axis is not None:
        shape[axis] = array.shape[axis]
    scales = found.scales.reshape(shape)
    others = tuple(each for each in range(3) if each != axis)
    simple = np.abs(array).max(axis=others, keepdims=True) / reach
    error = np.square(found.codes * scales - array).sum()
    assert error <= np.square(np.rint(array / simple) * simple - array).sum() * 1.0001


def test_a_weight_that_is_not_finite_has_no_integers() -> None:
    assert weight_of(np.array([np.nan], np.float32), None, Scheme(), least=None) is None


@given(st.floats(1e-6, 1e12), st.floats(2.0**-40, 1e6))
def test_a_bias_fits_once_its_scale_is_raised(bias: float, data: float) -> None:
    numbers = np.array([bias, -bias], np.float32)
    scales = least_scales(numbers, data)
    codes, steps = bias_of(numbers, data, scales)
    if not np.isfinite(steps).all():
        return
    # Scales are rounded to float32, and products of tiny ones are raised to the least normal.
    np.testing.assert_allclose(codes * steps.astype(np.float64), numbers, rtol=1e-5, atol=1e-36)


def test_a_range_has_a_scale_and_a_zero_point() -> None:
    for scheme, ends, scale, zero in (
        (Scheme(), (-1, 3), 4 / 255, 64),
        (Scheme(), (0, 255), 1, 0),
        (Scheme(), (-255, 0), 1, 255),
        (Scheme(), (51, 255), 1, 0),
        (Scheme(), (-255, -51), 1, 255),
        (Scheme(activations=DataType.INT8), (-128, 127), 1, 0),
        (Scheme(activations=DataType.INT8), (0, 255), 1, -128),
        (Scheme(activations=DataType.INT8, symmetric=True), (-127, 3), 1, 0),
        (Scheme(activations=DataType.INT8, symmetric=True), (-3, 127), 1, 0),
        (Scheme(activations=DataType.UINT8, symmetric=True), (2, 127), 1, 128),
        (Scheme(activations=DataType.UINT8, symmetric=True), (-127, -2), 1, 128),
        (Scheme(activations=DataType.UINT16), (0, 65535), 1, 0),
        (Scheme(activations=DataType.UINT16, symmetric=True), (0, 32767), 1, 32768),
        (Scheme(activations=DataType.INT16, symmetric=True), (0, 32767), 1, 0),
    ):
        found = parameters_of(*ends, scheme)
        assert found == Parameters(float(np.float32(scale)), zero, scheme.activations), ends
    for number, usable in ((0, 1), (-1, 1), (2.0**-130, LEAST), (0.5, 0.5)):
        assert usable_scale(number) == usable


def test_codes_hold_less_than_a_step_beyond_their_ends() -> None:
    found = Parameters(0.5, 10, DataType.UINT8)  # -5 to 122.5
    for low, high, holds in (
        (-5.5, 123, True), (-5.51, 0, False), (0, 123.1, False), (0, 0, True), (-6, 200, False),
    ):  # fmt: skip
        assert found.holds(low, high) is holds
    numbers = np.array([-9, -5, 0, 0.24, 0.26, 122.5, 200], np.float32)
    assert found.codes(numbers).tolist() == [0, 0, 10, 10, 11, 255, 255]
    assert found.rounded(numbers).tolist() == [-5, -5, 0, 0, 0.5, 122.5, 122.5]


def test_a_weight_has_codes_scales_and_zero_points() -> None:
    rows, unsigned = [[127, 1], [254, 4]], {"unsigned": True}
    wide = Scheme(weights=DataType.INT16)
    cases: list[tuple[Any, int | None, Scheme, dict[str, Any], Any, Any, Any]] = [
        (rows, 0, Scheme(), {}, [[127, 1], [127, 2]], [1, 2], [0, 0]),
        ([[127, 254], [1, 4]], 1, Scheme(), {}, [[127, 127], [1, 2]], [1, 2], [0, 0]),
        ([[127, -1], [5, 0]], None, Scheme(), {}, [[127, -1], [5, 0]], 1, 0),
        ([[0, 0], [127, 5]], 0, Scheme(), {}, [[0, 0], [127, 5]], [1, 1], [0, 0]),
        ([[0, 0]], None, Scheme(), {}, [[0, 0]], 1, 0),
        (rows, 0, Scheme(), unsigned, [[255, 129], [255, 130]], [1, 2], [128, 128]),
        ([[63, -5]], None, Scheme(reduce_range=True), {}, [[63, -5]], 1, 0),
        ([[32767, -5]], None, wide, unsigned, [[65535, 32763]], 1, 32768),
        ([[126, 2]], 0, Scheme(), {"least": np.array([2.0], np.float32)}, [[63, 1]], [2], [0]),
        ([[126, 2]], 0, Scheme(), {"least": np.array([0.1], np.float32)}, None, None, [0]),
    ]
    for array, axis, scheme, held, codes, scales, zeros in cases:
        given = {"least": None} | held
        found = weight_of(np.array(array, np.float32), axis, scheme, **given)
        assert found is not None
        assert (found.zeros.tolist(), found.axis) == (zeros, axis)
        if codes is not None:
            assert (found.codes.tolist(), found.scales.tolist()) == (codes, scales)
        kind = np.dtype(scheme.weights.numpy).itemsize
        name = f"{'u' if held.get('unsigned') else ''}int{8 * kind}"
        assert (found.codes.dtype.name, found.zeros.dtype.name) == (name, name)


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_a_bias_has_the_scale_of_its_product_and_needs_some() -> None:
    codes, steps = bias_of(floats(1, -2.5), 0.5, floats(1, 2))
    assert (codes.tolist(), codes.dtype, steps.tolist()) == ([2, -2], np.int32, [0.5, 1])
    codes, steps = bias_of(floats(1e30, -1e30), 0.5, floats(1))
    assert (codes.tolist(), steps.tolist()) == ([2**31 - 1, -(2**31)], [0.5, 0.5])
    _, steps = bias_of(floats(0), 1e-30, floats(1e-30))
    assert steps.tolist() == [LEAST]
    assert least_scales(floats((2**31 - 1) / 2, 0), 0.5).tolist() == [2, 0]
    assert least_scales(floats(3e38), 1e-12).tolist() == [np.finfo(np.float32).max]
