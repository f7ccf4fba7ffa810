"""The integers that a Quant of QONNX rounds to."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, parsed
from tiered.function_passes.quantization._qonnx_grid import (
    Grid,
    Steps,
    grid_between,
    grid_of,
    steps_of,
)
from tiered.graph import DataType


@pytest.mark.parametrize(
    ("grid", "limits", "dtype", "is_whole"),
    [
        (Grid(8, True, False), (-128, 127), "INT8", True),
        (Grid(8, True, True), (-127, 127), "INT8", False),
        (Grid(8, False, True), (0, 254), "UINT8", False),
        (Grid(4, False, False), (0, 15), "UINT8", False),
        (Grid(9, True, False), (-256, 255), "INT16", False),
        (Grid(32, True, False), (-(2**31), 2**31 - 1), "INT32", True),
    ],
)
def test_limits_and_the_dtype_that_holds_them(
    grid: Grid, limits: tuple[int, int], dtype: str, is_whole: bool
) -> None:
    assert (grid.low, grid.high) == limits
    assert grid.dtype.name == dtype
    assert grid.is_whole is is_whole
    if not is_whole or grid.bits <= 16:
        assert grid_between(*limits, signed=grid.signed) == grid


@pytest.mark.parametrize("limits", [(-100, 100), (0, 0), (5, 5), (-127, 128)])
def test_limits_of_no_number_of_bits_are_no_grid(limits: tuple[int, int]) -> None:
    assert grid_between(*limits, signed=True) is None


def test_the_grid_of_a_dtype_is_all_of_it() -> None:
    assert grid_of(DataType.UINT16) == Grid(16, False, False)
    assert grid_of(DataType.INT8) == Grid(8, True, False)


def quant(
    scale: str = "float s = {0.5}",
    zero: str = "float z = {0}",
    bits: int = 8,
    *,
    x: str = "float[2,3] x",
    weights: str = "",
    attributes: str = "signed=1, narrow=0",
) -> Steps | str:
    """Return what Q/DQ make of a Quant, or why they make nothing of it."""
    inputs = "float[2,3] other" if weights else x
    text = f"""<ir_version: 10, opset_import: ["" : 21, "qonnx.custom_op.general" : 1]>
        g ({inputs}) => (float[2,3] y) <{weights} {scale}, {zero}, float n = {{{bits}}}>
        {{ y = qonnx.custom_op.general.Quant<{attributes}>(x, s, z, n) }}"""
    found = steps_of(made_by(parsed(text), "y"))
    return found if isinstance(found, Steps) else str(found)


W = "float[2,3] x = {1,2,3,4,5,6},"


def test_one_scale_has_no_axis_and_a_vector_that_of_x() -> None:
    one = quant("float[1,1] s = {0.5}")
    assert isinstance(one, Steps)
    assert (one.axis, one.scale.shape, one.grid) == (None, (), Grid(8, True, False))
    assert one.zeros.dtype == np.int8
    for scale, axis in (("float[3] s = {1,2,3}", 1), ("float[2,1] s = {1,2}", 0)):
        found = quant(scale)
        assert isinstance(found, Steps)
        assert found.axis == axis
        assert found.scale.ndim == 1
        assert found.zero.shape == found.scale.shape


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ({"bits": 16, "attributes": "signed=1, narrow=1"}, "more than 8 bits"),
        ({"bits": 32}, "more than 8 bits"),
        ({"bits": 1}, "one bit"),
        ({"zero": "float z = {3}"}, "the zero point is not zero"),
        ({"zero": "float z = {0.5}", "weights": W}, "no integer of the dtype"),
        ({"zero": "float z = {128}", "weights": W}, "no integer of the dtype"),
        ({"scale": "float s = {0}"}, "not positive and finite"),
        ({"scale": "float s = {-1}"}, "not positive and finite"),
        ({"scale": "float[2,3] s = {1,2,3,4,5,6}"}, "along two axes"),
        ({"scale": "float[1,1,1] s = {1}"}, "may have more dims than x"),
        ({"scale": "float[3] s = {1,2,3}", "x": "float[2,N] x"}, "not known"),
        ({"attributes": 'signed=1, narrow=0, rounding_mode="FLOOR"'}, "it rounds by"),
    ],
)
def test_what_q_dq_do_not_compute(given: dict[str, Any], because: str) -> None:
    assert because in str(quant(**given))


def test_integers_of_16_and_32_bits_are_those_of_the_dtype() -> None:
    for found in (quant(bits=16), quant(bits=32, weights=W)):
        assert isinstance(found, Steps)
        assert found.grid.is_whole


def test_codes_are_rounded_clipped_and_offset_along_their_axis() -> None:
    found = quant("float[2,1] s = {1,2}", "float[2,1] z = {0,3}", bits=4, weights=W)
    assert isinstance(found, Steps)
    codes = found.codes_of(np.array([[0.5, 1.5, 99], [-2, 3, -99]], np.float32))
    assert codes is not None
    assert codes.dtype == np.int8
    np.testing.assert_array_equal(codes, [[0, 2, 7], [2, 4, -8]])


def test_numbers_without_an_integer_have_no_codes() -> None:
    wide = Steps(Grid(32, True, False), np.ones((), np.float32), np.zeros((), np.float32), None)
    assert wide.codes_of(np.array([3e9], np.float32)) is None
    assert wide.codes_of(np.array([np.nan], np.float32)) is None
    assert wide.codes_of(np.array([-3e9], np.float32)) is not None
