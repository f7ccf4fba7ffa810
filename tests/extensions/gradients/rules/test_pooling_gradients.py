"""Gradients of pools."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check, gradients_of
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse


@pytest.mark.parametrize(
    "call",
    ["MaxPool <kernel_shape = [2,3], strides = [2,1], pads = [1,1,0,1]>",
     "AveragePool <kernel_shape = [2,3], strides = [2,1]>",
     "AveragePool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>",
     "AveragePool <kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,1], count_include_pad = 1>",
     "AveragePool <kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>",
     "GlobalAveragePool", "GlobalMaxPool"],
)  # fmt: skip
def test_pools(call: str) -> None:
    check(f"(double[1,2,6,6] x) => (double[N,C,P,Q] y) {{ y = {call}(x) }}")


def test_a_global_pool_of_powers() -> None:
    check("(double[2,3,4,5] x) => (double[2,3,1,1] y) { y = GlobalLpPool(x) }", in_float=True)


def test_positions_in_another_order() -> None:
    check(
        "(double[1,2,5,5] x) => (double[1,2,2,2] y) "
        "{ y, i = MaxPool <kernel_shape = [2,2], strides = [2,2], storage_order = 1> (x) }"
    )


def test_overlapping_windows_add_up_at_the_largest_element() -> None:
    text = "(float[1,1,5] x) => (float[1,1,3] y) { y = MaxPool <kernel_shape = [3]> (x) }"
    found = gradients_of(text, x=[[[0, 1, 5, 2, 9]]], seed=[1, 10, 100], in_float=True)["x"]
    np.testing.assert_array_equal(found, [[[0, 0, 11, 0, 100]]])


def test_elements_that_are_equally_large_share_the_gradient_of_a_global_pool() -> None:
    text = "(double[1,2,2,2] x) => (double[1,2,1,1] y) { y = GlobalMaxPool(x) }"
    x = [[[[3, 3], [1, 3]], [[np.nan, 1], [2, 0]]]]
    found = gradients_of(text, x=x, seed=[6, 1])["x"]
    np.testing.assert_array_equal(found, [[[[2, 2], [0, 2]], [[0, 0], [0, 0]]]])


@pytest.mark.parametrize(
    ("settings", "size", "expected"),
    [
        ("strides = [2]", 2, [0.5, 0.5, 5, 5, 0]),
        ("strides = [2], ceil_mode = 1", 3, [0.5, 0.5, 5, 5, 100]),
        ("strides = [2], pads = [1,0]", 3, [1, 5, 5, 50, 50]),
        ("strides = [2], pads = [1,0], count_include_pad = 1", 3, [0.5, 5, 5, 50, 50]),
        ("strides = [2], pads = [0,1], count_include_pad = 1", 3, [0.5, 0.5, 5, 5, 50]),
        ('strides = [2], auto_pad = "SAME_UPPER"', 3, [0.5, 0.5, 5, 5, 100]),
        ('strides = [2], auto_pad = "SAME_LOWER"', 3, [1, 5, 5, 50, 50]),
    ],
)
def test_a_mean_is_of_the_elements_that_its_window_counts(
    settings: str, size: int, expected: list[float]
) -> None:
    text = f"""(float[1,1,5] x) => (float[1,1,{size}] y) {{
        y = AveragePool <kernel_shape = [2], {settings}> (x) }}"""
    found = gradients_of(text, x=np.ones((1, 1, 5)), seed=[1, 10, 100][:size], in_float=True)["x"]
    np.testing.assert_allclose(found.ravel(), expected)


def test_a_window_up_to_the_end_needs_known_dims() -> None:
    text = """(float[1,1,L] x) => (float[1,1,M] y) {
        y = AveragePool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x) }"""
    with pytest.raises(NoGradient, match="ceil_mode needs known spatial dims"):
        get_pass("gradient", seed="input")(parse(text))


POWERS = """(float[1,1,5] x) => (float[1,1,{size}] y) {{
    y = LpPool <kernel_shape = [2], {more}> (x) }}"""


@pytest.mark.parametrize(
    ("more", "size", "expected"),
    [
        ("strides = [2]", 2, [0.6, 0.8, 0, 0, 0]),
        ("strides = [2], ceil_mode = 1", 3, [0.6, 0.8, 0, 0, -1]),
        ("strides = [2], p = 1", 2, [1, 1, 0, 0, 0]),
        ("strides = [2], pads = [1,0]", 3, [1, 1, 0, 0, -1]),
    ],
)
def test_a_pool_of_powers_by_hand(more: str, size: int, expected: list[float]) -> None:
    text = POWERS.format(more=more, size=size)
    found = gradients_of(text, x=[[[3, 4, 0, 0, -5]]], opset=18, in_float=True)["x"]
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6)


def test_a_global_pool_of_zeros_has_the_gradient_zero() -> None:
    text = "(float[1,2,2] x) => (float[1,2,1] y) { y = GlobalLpPool(x) }"
    found = gradients_of(text, x=[[[0, 0], [3, -4]]], in_float=True)["x"]
    np.testing.assert_allclose(found, np.array([[[0, 0], [0.6, -0.8]]]), rtol=1e-6)
