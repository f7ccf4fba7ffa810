"""Scales are finite and positive, 0 is on the grid, and errors are at most half a step."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tiered import DataType
from tiered.numerics.quantization.scales import (
    LEAST,
    bias_of,
    least_scales,
    parameters_of,
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
