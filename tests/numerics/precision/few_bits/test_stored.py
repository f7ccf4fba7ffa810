"""A weight in few bits: the codes, scales and axis of each form."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, parsed
from tiered.numerics.precision.few_bits import stored as module
from tiered.numerics.precision.few_bits.codes import signed_codes
from tiered.numerics.precision.few_bits.formats import int4_format, int8_format
from tiered.numerics.precision.few_bits.readers import WeightReader
from tiered.numerics.precision.few_bits.sampled_operands import WeightOperand
from tiered.numerics.precision.few_bits.stored import Stored, encoded

NODE = made_by(parsed("(float[2] x) => (float[2] y) { y = Neg(x) }"), "y")


def weights(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def stored(weight: Any, channel: int, block: int = 0, *, bits: int = 8) -> Stored:
    form = int8_format(block) if bits == 8 else int4_format(block)
    found = encoded(weight, WeightReader(NODE, 1, channel), form, None)
    assert found is not None
    return found


def numbers(found: Stored, block: int, shape: tuple[int, ...]) -> Any:
    """Return what a DequantizeLinear makes of codes and scales."""
    codes = found.codes.astype(np.float32)
    scales = found.scales.astype(np.float32)
    zeros = np.zeros_like(scales) if found.zeros is None else found.zeros.astype(np.float32)
    if block:
        size = codes.shape[found.axis]
        scales, zeros = (
            np.repeat(each, block, found.axis).take(range(size), found.axis)
            for each in (scales, zeros)
        )
    else:
        place = [1] * codes.ndim
        place[found.axis] = -1
        scales, zeros = scales.reshape(place), zeros.reshape(place)
    return ((codes - zeros) * scales).reshape(found.shape or shape)


@pytest.mark.parametrize(
    ("shape", "channel"), [((6, 5), 0), ((6, 5), 1), ((4, 3, 2, 2), 0), ((4, 3, 2), 2)]
)
def test_a_channel_has_one_scale(shape: tuple[int, ...], channel: int) -> None:
    weight = weights(*shape)
    found = stored(weight, channel)
    assert found.codes.shape == shape
    assert found.codes.dtype == np.int8
    assert found.scales.shape == (shape[channel],)
    assert (found.axis, found.shape, found.zeros, found.is_fitted) == (channel, None, None, False)
    scales = np.abs(np.moveaxis(weight, channel, 0).reshape(shape[channel], -1)).max(1) / 127
    np.testing.assert_allclose(found.scales, scales, rtol=1e-6)
    half = np.expand_dims(scales, tuple(at for at in range(len(shape)) if at != channel)) / 2
    assert (np.abs(numbers(found, 0, shape) - weight) <= half * 1.001).all()


@pytest.mark.parametrize(
    ("shape", "channel", "axis", "codes", "scales", "made"),
    [
        ((6, 5), 0, 1, (6, 5), (6, 3), None),
        ((6, 5), 1, 0, (6, 5), (3, 5), None),
        ((4, 3, 2), 0, 1, (4, 6), (4, 3), (4, 3, 2)),
        ((4, 3, 2), 2, 0, (12, 2), (6, 2), (4, 3, 2)),
    ],
)
@pytest.mark.parametrize("bits", [8, 4])
def test_a_block_has_one_scale(
    shape: tuple[int, ...], channel: int, axis: int, codes: tuple[int, ...],
    scales: tuple[int, ...], made: tuple[int, ...] | None, bits: int,
) -> None:  # fmt: skip
    weight = weights(*shape)
    found = stored(weight, channel, 2, bits=bits)
    assert (found.codes.shape, found.scales.shape) == (codes, scales)
    assert (found.axis, found.shape) == (axis, made)
    assert (found.zeros is None) == (bits == 8)
    if found.zeros is not None:
        assert found.zeros.shape == scales
    step = 0.5 / (127 if bits == 8 else 7)
    error = np.abs(numbers(found, 2, shape) - weight).max()
    assert error <= np.abs(weight).max() * step * 1.5


def test_bytes_are_those_of_codes_scales_and_zero_points() -> None:
    assert stored(weights(6, 5), 0).nbytes == 30 + 6 * 4
    # Two codes, and two zero points, are a byte.
    assert stored(weights(6, 4), 0, 2, bits=4).nbytes == 12 + 12 * 4 + 6


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("block", [0, 2])
def test_a_number_that_is_not_finite_has_no_code(number: float, block: int) -> None:
    weight = weights(4, 4)
    weight[3, 1] = number
    assert encoded(weight, WeightReader(NODE, 1, 0), int8_format(block), None) is None
    kernel = weights(2, 2, 3)
    kernel[1, 1, 2] = number
    assert encoded(kernel, WeightReader(NODE, 1, 2), int8_format(2), None) is None


def test_the_quality_is_the_ratio_of_signal_and_noise() -> None:
    weight = weights(8, 16)
    found = stored(weight, 0)
    error = numbers(found, 0, weight.shape).astype(np.float64) - weight
    expected = 10 * np.log10((weight.astype(np.float64) ** 2).sum() / (error**2).sum())
    assert found.quality == pytest.approx(expected, abs=1e-3)
    exact = stored(np.array([[127, -127], [0, 0]], np.float32), 0)
    assert exact.quality == np.inf


@pytest.mark.parametrize(("block", "channel"), [(0, 0), (0, 1), (2, 0), (2, 1)])
def test_a_large_weight_is_encoded_in_parts(
    monkeypatch: pytest.MonkeyPatch, block: int, channel: int
) -> None:
    weight = weights(7, 6)
    whole = stored(weight, channel, block)
    monkeypatch.setattr(module, "_AT_ONCE", 13)
    found = stored(weight, channel, block)
    np.testing.assert_array_equal(found.codes, whole.codes)
    np.testing.assert_array_equal(found.scales, whole.scales)
    assert found.quality == pytest.approx(whole.quality)


def test_scales_have_the_type_of_the_weight() -> None:
    found = stored(weights(4, 4).astype(np.float16), 0)
    assert found.scales.dtype == np.float16


def test_a_format_that_fits_codes_does_so_for_an_operand() -> None:
    weight, asked = weights(4, 6), list[object]()

    def fit(rows: Any, block: int, dtype: Any, operand: Any) -> Any:
        asked.append((rows.shape, block, dtype, operand))
        return signed_codes if operand == "takes" else None

    form = int8_format(2)._replace(fit=fit)
    reader = WeightReader(NODE, 1, 0)
    for operand, is_fitted in (("takes", True), ("none", False), (None, False)):
        found = encoded(weight, reader, form, operand)  # type: ignore[arg-type]  # any object will do
        assert found is not None
        assert found.is_fitted == is_fitted
    assert asked == [((4, 6), 2, weight.dtype, "takes"), ((4, 6), 2, weight.dtype, "none")]


def test_codes_are_fitted_to_an_operand_where_the_form_can(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, reader = weights(6, 4), WeightReader(NODE, 1, 0)
    operand, calls = WeightOperand(weights(2, 4), weights(1, 4)), list[int]()
    monkeypatch.setattr(module, "_AT_ONCE", 11)
    monkeypatch.setattr(module, "_FITTED_AT_ONCE", 3)

    def zeros(part: Any, block: int, dtype: Any) -> Any:
        calls.append(len(part))
        return signed_codes(part * 0, block, dtype)

    def fit(rows: Any, block: int, dtype: Any, of: WeightOperand) -> Any:
        assert (rows.shape, block, dtype, of) == ((6, 4), 4, np.float32, operand)
        return zeros

    plain = int8_format(0)._replace(encode=lambda node: counted)

    def counted(part: Any, block: int, dtype: Any) -> Any:
        calls.append(len(part))
        return signed_codes(part, block, dtype)

    for form, given, is_fitted, parts in (
        (plain, operand, False, [2, 2, 2]),
        (plain._replace(fit=fit), None, False, [2, 2, 2]),
        (plain._replace(fit=lambda *_: None), operand, False, [2, 2, 2]),
        (plain._replace(fit=fit), operand, True, [1] * 6),
    ):
        calls.clear()
        found = encoded(weight, reader, form, given)
        assert found is not None
        assert (found.is_fitted, calls) == (is_fitted, parts)
        assert found.codes.any() != is_fitted
