"""Gradients of Fourier transforms, products along an axis, determinants, and columns."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import check


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_products_up_to_an_element_that_is_zero(exclusive: int, reverse: int) -> None:
    x = np.array([[2, 0.5, 0, 3, -1], [1, 0, 4, 0, 2], [1, 2, 3, 4, 5], [0, 0, 1, 1, 1]])
    check(
        "(double[4,5] x) => (double[4,5] y) <int64 a = {-1}> "
        f"{{ y = CumProd <exclusive = {exclusive}, reverse = {reverse}> (x, a) }}",
        feeds={"x": x}, opset=26, in_float=True,
    )  # fmt: skip


def test_products_along_the_first_of_three_axes() -> None:
    check(
        "(double[3,N,2] x) => (double[3,N,2] y) <int64 a = {0}> { y = CumProd(x, a) }",
        opset=26,
        in_float=True,
    )


MATRICES = {
    "1": np.array([[[2.0]]]),
    "2": np.array([[[1, 2], [2, 4.0]], [[3, 1], [0, 2]]]),
    "3": np.array([[[1, 2, 3], [4, 5, 6], [7, 8, 9.0]], [[2, 0, 1], [1, 3, 2], [0, 1, 1]]]),
}


@pytest.mark.parametrize("size", MATRICES)
def test_determinants_also_of_singular_matrices(size: str) -> None:
    x = MATRICES[size]
    check(
        f"(double[{len(x)},{size},{size}] x) => (double[{len(x)}] y) {{ y = Det(x) }}",
        feeds={"x": x},
    )


@pytest.mark.parametrize(
    ("columns", "count", "settings"),
    [("3,2", 9, "strides = [1,1]"), ("3,2", 6, "strides = [2,1], pads = [1,0,0,0]"),
     ("2,2", 6, "dilations = [2,2]")],
)  # fmt: skip
def test_col2im(columns: str, count: int, settings: str) -> None:
    check(
        f"(double[2,12,{count}] x) => (double[2,C,5,4] y) "
        f"<int64[2] i = {{5,4}}, int64[2] b = {{{columns}}}> "
        f"{{ y = Col2Im <{settings}> (x, i, b) }}",
        in_float=True,
    )


def test_an_einsum_of_a_diagonal() -> None:
    check('(double[2,3,3] x) => (double[2,3] y) { y = Einsum <equation = "bii->bi"> (x) }')


def test_an_einsum_of_a_trace_times_an_operand() -> None:
    check(
        "(double[3,3] x, double[3,4] w) => (double[4] y) "
        '{ y = Einsum <equation = "ii,ij->j"> (x, w) }'
    )
