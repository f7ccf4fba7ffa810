"""Ranges of sums of products: exact for weights, and for as many terms as there are."""

import math

import numpy as np
import pytest

from tests.graph.intervals.rules.of_integers import Limits, assert_bounds, interval_in, interval_of
from tiered.graph.intervals.rules.product_ranges import _signed_sums

INF = math.inf
W = "float[3,2] w = {1,-2,3,4,-5,6}, float[2,3] t = {1,3,-5,-2,4,6}, float[2] c = {10,20},"


@pytest.mark.parametrize(
    ("nodes", "limits", "expected"),
    [
        # the columns are 1, 3, -5 and -2, 4, 6
        ("y = MatMul(a, w)", [(0, 1)], (-5, 10)),
        ("y = MatMul(a, w)", [(-1, 2)], (-14, 22)),
        ("y = MatMul(t, d)", [(0, 1)], (-5, 10)),
        ("y = Gemm(a, w)", [(0, 1)], (-5, 10)),
        ("y = Gemm<transB = 1>(a, t)", [(0, 1)], (-5, 10)),
        ("y = Gemm<alpha = 2.0>(a, w, c)", [(0, 1)], (0, 40)),
        ("y = Gemm<beta = 0.5>(a, w, c)", [(0, 1)], (0, 20)),
        ("y = Gemm<beta = 0.0>(a, w, c)", [(0, 1)], (-5, 10)),
        ("e = Transpose(a)  y = MatMul(a, e)", [(-1, 2)], (-6, 12)),
        ('y = Einsum<equation = "ij,kj->ik">(a, a)', [(-1, 2)], (-6, 12)),
        ('y = Einsum<equation = "ij,jk->k">(a, w)', [(0, 1)], (-30, 36)),
    ],
)
def test_the_bounds_of_matrix_products(
    nodes: str, limits: list[Limits], expected: tuple[float, float]
) -> None:
    nodes = nodes.replace("y = MatMul(t, d)", "d = Transpose(a)  y = MatMul(t, d)")
    assert_bounds(interval_of(nodes, *limits, dims="2,3", more=W), expected, error=1e-3)


def test_an_equation_that_is_not_followed_has_no_bound() -> None:
    for equation in ("ij,jk", "...j,jk->...k"):
        nodes = f'y = Einsum<equation = "{equation}">(a, w)'
        assert interval_of(nodes, (0, 1), dims="2,3", more=W).high == INF


def test_a_product_with_nothing_is_zero_or_has_no_elements() -> None:
    empty = interval_of("y = MatMul(a, w)", (0, 1), dims="2,0", more="float[0,2] w = {},")
    assert (empty.low, empty.high) == (0, 0)


K = "float[2,1,3] k = {1,-2,3,4,5,-6}, float[1,2,2] q = {1,-2,3,4}, float[2] b = {10,20},"


@pytest.mark.parametrize(
    ("nodes", "limits", "expected"),
    [
        ("y = Conv(a, k)", (0, 1), (-6, 9)),
        ("y = Conv(a, k)", (1, 2), (-12, 18)),  # padding is 0, so a term may lack
        ("y = Conv(a, k, b)", (0, 1), (4, 29)),
        ("y = ConvTranspose(a, q)", (0, 1), (-2, 7)),
    ],
)
def test_the_bounds_of_convolutions(
    nodes: str, limits: Limits, expected: tuple[float, float]
) -> None:
    assert_bounds(interval_of(nodes, limits, dims="1,1,6", more=K), expected, error=1e-3)


def test_a_kernel_that_is_computed_counts_its_elements() -> None:
    found = interval_of("y = Conv(a, b)", (0, 1), (-1, 2), dims="1,2,3")
    assert (found.low, found.high) == pytest.approx((-6, 12), rel=1e-3)


def test_sums_that_overflow_have_no_bound() -> None:
    more = "float[3,1] w = {3e38,3e38,-3e38},"
    assert interval_of("y = MatMul(a, w)", (0, 1), dims="2,3", more=more) == (-INF, INF, True)


def test_an_infinite_operand_is_multiplied_without_its_weight() -> None:
    assert interval_of("l = Log(a)  y = MatMul(l, w)", (0, 1), dims="2,3", more=W).may_be_nan


BYTES = "uint8[3,2] v = {1,2,3,4,5,6}, uint8 z = {3}, uint8 o = {10}, uint8[3] line = {9,9,9},"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("MatMulInteger(a, v)", (0, 3 * 5 * 6)),
        ("MatMulInteger(a, v, o)", (-3 * 10 * 6, -3 * 5)),
        ("MatMulInteger(a, v, , z)", (-3 * 5 * 2, 3 * 5 * 3)),
        ("MatMulInteger(a, v, o, z)", (-3 * 10 * 3, 3 * 10 * 2)),
        ("MatMulInteger(a, line)", (0, 3 * 5 * 9)),
    ],
)
def test_zero_points_are_taken_from_integers(call: str, expected: Limits) -> None:
    found = interval_of(f"y = {call}", (0, 5), dims="2,3", dtype=2, more=BYTES)
    assert found.low <= expected[0]
    assert found.high >= expected[1]
    wide = 1.7 * max(map(abs, expected))
    assert -wide <= found.low
    assert found.high <= wide


def test_numbers_and_integers_become_each_other() -> None:
    more = "float s = {0.5}, uint8 z = {10}, uint8 wide = {200},"
    found = interval_of("y = DequantizeLinear(a, s, z)", (0, 30), dtype=2, more=more)
    assert_bounds(found, (-5, 10))
    found = interval_of("y = DequantizeLinear(a, s)", (0, 30), dtype=2, more=more)
    assert_bounds(found, (0, 15))
    found = interval_of("y = QuantizeLinear(a, s, z)", (-2, 30), more=more)
    assert found.low <= 6 <= found.low + 2
    assert found.high - 2 <= 70 <= found.high
    found = interval_of("y = QuantizeLinear(a, s, wide)", (-999, 999), more=more)
    assert (found.low, found.high) == (0, 255)
    found = interval_of("l = Log(a)  y = QuantizeLinear(l, s, z)", (0, 1), more=more)
    assert (found.low, found.high) == (0, 255)


def test_weights_are_summed_by_sign_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = np.arange(-12, 12, dtype=np.float32).reshape(4, 3, 2)
    expected = [np.maximum(weight, 0).sum((0, 1)), -np.minimum(weight, 0).sum((0, 1))]
    for rows in (1 << 20, 4, 1):
        monkeypatch.setattr("tiered.graph.intervals.rules.product_ranges._ROWS", rows)
        np.testing.assert_allclose(_signed_sums(weight, [0, 1]), expected)


@pytest.mark.parametrize(
    ("nodes", "limits", "expected"),
    [
        ("y = MatMul(a, column)", (0, 1), (-2, 4)),
        ("y = MatMul(line, a)", (0, 1), (-2, 1)),
        ("y = MatMul(a, batch)", (0, 1), (-3, 15)),
        ("y = MatMul(left, a)", (0, 1), (-4, 5)),
        ("y = Gemm<transA = 1>(a, w)", (0, 1), (-2, 4)),
        ("y = Gemm(a, e, a)", (1, 2), (4, 14)),
        ("y = Gemm<alpha = -1.0>(a, e)", (1, 2), (-12, -3)),
        ('y = Einsum<equation = "ij->i">(a)', (-1, 2), (-3, 6)),
        ('y = Einsum<equation = "i j, k j, j -> i k">(a, a, three)', (0, 2), (0, 36)),
        ('y = Einsum<equation = "ij->ij">(a)', (-1, 2), (-1, 2)),
    ],
)
def test_the_bounds_of_products_with_weights_of_each_rank(
    nodes: str, limits: Limits, expected: tuple[float, float]
) -> None:
    more = (
        "float[3] column = {1,-2,3}, float[2] line = {1,-2}, float[2,3,1] batch = {1,2,-3,4,5,6},"
        " float[2,1,2] left = {1,-4,5,0}, float[2,2] w = {1,3,-2,1}, float[3] three = {3,3,3},"
    )
    nodes = f"e = Transpose(a) {nodes}"
    assert_bounds(interval_of(nodes, limits, dims="2,3", more=more), expected, error=1e-3)


def test_sums_of_integers_are_off_by_one_at_most() -> None:
    more = "int32[3,2] w = {1,-2,3,4,-5,6},"
    found = interval_of("y = MatMul(a, w)", (0, 1), dims="2,3", dtype=6, more=more)
    assert -7 <= found.low <= -5
    assert 10 <= found.high <= 12
    whole = interval_of("y = Gemm(a, w)", (0, 1), dims="2,3", dtype=6, more=more)
    assert (whole.low, whole.high) == (-(2**31), 2**31 - 1)


def test_a_term_of_a_convolution_may_lack() -> None:
    found = interval_of("y = Conv(a, b)", (1, 2), (2, 3), dims="1,2,3")
    assert (found.low, found.high) == pytest.approx((0, 36), abs=1e-3)
    infinite = interval_of("l = Log(a)  y = Conv(l, k)", (0, 1), dims="1,1,6", more=K)
    assert infinite.may_be_nan


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("QuantizeLinear(a, half)", (0, 22)),
        ("QuantizeLinear(a, half, low)", (-1, 22)),
        ("QuantizeLinear(a, none)", (0, 255)),
        ("QuantizeLinear(a, minus)", (0, 255)),
        ("QuantizeLinear(a, huge)", (0, 255)),
        ("QuantizeLinear<output_dtype = 17>(a, half)", (-INF, INF)),
    ],
)
def test_quotients_are_rounded_outward_and_held_by_the_dtype(call: str, expected: Limits) -> None:
    more = (
        "float half = {0.5}, float none = {0}, float minus = {-1}, int8 low = {0}, float k = {900},"
    )
    found = interval_of(
        f"m = Mul(b, k)  huge = Exp(m)  y = {call}", (0, 10), (0, 1), dims="", more=more
    )
    assert (found.low, found.high) == expected


def test_the_number_of_terms_is_that_of_either_operand() -> None:
    """Each term is between 0 and 1."""
    unknown = 2**31 - 1
    for inputs, line, most in (
        ("float[2,3] x, float[N,4] v", "Gemm(a, b)", 3),
        ("float[3,2] x, float[N,4] v", "Gemm<transA = 1>(a, b)", 3),
        ("float[2,N] x, float[3,4] v", "Gemm(a, b)", 3),
        ("float[2,N] x, float[4,3] v", "Gemm<transB = 1>(a, b)", 3),
        ("float[2,N] x, float[N,4] v", "Gemm(a, b)", unknown),
        ("float[2,3] x, float[N,4] v", "MatMul(a, b)", 3),
        ("float[2,N] x, float[3,4] v", "MatMul(a, b)", 3),
        ("float[] x, float[3,4] v", "MatMul(a, b)", 3),
        ("float[2,3] x, float[] v", "MatMul(a, b)", 3),
        ("float[N] x, float[5,3,4] v", "MatMul(a, b)", 3),
        ("float[3] x, float[N] v", "MatMul(a, b)", 3),
        ("float[] x, float[] v", "MatMul(a, b)", unknown),
        ("float[2,N] x, float[3,4] v", 'Einsum<equation = "ij,jk->ik">(a, b)', 3),
        ("float[2,3] x, float[N,4] v", 'Einsum<equation = "ij,jk->ik">(a, b)', 3),
    ):  # fmt: skip
        text = f"({inputs}) => (float[] y) {{ a = Sigmoid(x)  b = Sigmoid(v)  y = {line} }}"
        found = interval_in(text)
        assert found.low == pytest.approx(0, abs=1e-2), (inputs, line)
        assert most <= found.high < 5 * most, (inputs, line)
        assert most > 3 or found.high < 3.1, (inputs, line)


def test_products_of_integers_count_the_terms_of_either_operand() -> None:
    term, unknown = 255 * 255, 2**31 - 1
    for inputs, most in (
        ("uint8[2,3] x, uint8[N,4] v", 3 * term),
        ("uint8[2,N] x, uint8[3,4] v", 3 * term),
        ("uint8[2,3] x, uint8[] v", 3 * term),
        ("uint8[] x, uint8[3] v", 3 * term),
        ("uint8[] x, uint8[] v", unknown),
        ("uint8 x, uint8 v", unknown),
    ):
        found = interval_in(f"({inputs}) => (int32[] y) {{ y = MatMulInteger(x, v) }}")
        assert found.high == most, inputs


def test_operands_of_unknown_rank_have_no_bound_where_axes_are_counted() -> None:
    for inputs, line in (
        ("float[1,1,6] x, float[] v", "Conv(a, b)"),
        ("float[1,1,6] x, float[] v", "ConvTranspose(a, b)"),
        ("float[] x, float[3,4] v", 'Einsum<equation = "ij,jk->ik">(a, b)'),
        ("float[2,3] x, float[] v", 'Einsum<equation = "ij,jk->ik">(a, b)'),
    ):
        text = f"({inputs}) => (float[] y) {{ a = Sigmoid(x)  b = Sigmoid(v)  y = {line} }}"
        assert interval_in(text) == (-INF, INF, True), (inputs, line)


def test_weights_and_operands_that_are_not_finite() -> None:
    more = "float[3,1] w = {inf,1,1}, float[3,1] v = {1,2,3}, float[3,1] m = {nan,1,1},"
    nodes = "n = Sqrt(a)  y = MatMul"
    found = interval_of(f"{nodes}(a, w)", (1, 4), dims="2,3", more=more)
    assert (found.low, found.high) == (0, INF)
    assert interval_of(f"{nodes}(a, w)", (0, 4), dims="2,3", more=more).may_be_nan
    assert interval_of(f"{nodes}(a, m)", (1, 4), dims="2,3", more=more).may_be_nan
    found = interval_of(f"{nodes}(n, v)", (-1, 4), dims="2,3", more=more)
    assert found.may_be_nan
    assert found.high >= 12
