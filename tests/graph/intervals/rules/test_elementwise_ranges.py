"""Ranges of elementwise operators of one tensor: what they compute at the ends, and no more."""

import math

import numpy as np
import pytest

from tests.graph.intervals.rules.of_integers import Limits, assert_bounds, interval_in, interval_of
from tiered import Interval

INF = math.inf


@pytest.mark.parametrize(
    ("op_type", "limits", "expected"),
    [
        ("Asinh", (-1, 2), (np.arcsinh(-1), np.arcsinh(2))),
        ("Atan", (-1, 2), (np.arctan(-1), np.arctan(2))),
        ("Erf", (-1, 2), (math.erf(-1), math.erf(2))),
        ("Exp", (-1, 2), (math.exp(-1), math.exp(2))),
        ("Sigmoid", (-1, 2), (1 / (1 + math.e), 1 / (1 + math.exp(-2)))),
        ("Sinh", (-1, 2), (np.sinh(-1), np.sinh(2))),
        ("Softplus", (-1, 2), (math.log1p(math.exp(-1)), math.log1p(math.exp(2)))),
        ("Tanh", (-1, 2), (np.tanh(-1), np.tanh(2))),
        ("Exp", (-900, -800), (0, 0)),
        ("Neg", (-1, 2), (-2, 1)),
        ("Abs", (-3, 2), (0, 3)),
        ("Abs", (-3, -2), (2, 3)),
        ("Sign", (-3, 2), (-1, 1)),
        ("Sign", (0, 2), (0, 1)),
        ("Sign", (-2, -1), (-1, -1)),
        ("Cos", (0, 0), (-1, 1)),
        ("Acos", (-1, 1), (0, math.pi)),
        ("Asin", (0, 1), (-math.pi / 2, math.pi / 2)),
        ("Acosh", (1, 3), (0, np.arccosh(3))),
        ("Cosh", (-3, 2), (1, np.cosh(3))),
        ("Log", (1, 3), (0, math.log(3))),
        ("Sqrt", (4, 9), (2, 3)),
        ("Reciprocal", (2, 4), (0.25, 0.5)),
        ("Relu", (-3, 2), (0, 2)),
        ("Relu", (1, 2), (1, 2)),
        ("Relu", (-3, -2), (0, 0)),
        ("HardSigmoid", (-9, 9), (0, 1)),
        ("Softsign", (-9, 9), (-1, 1)),
        ("Identity", (-3, 2), (-3, 2)),
        ("Gelu", (-9, 2), (-0.171, 2)),
        ("HardSwish", (-9, 2), (-0.376, 2)),
        ("Mish", (1, 2), (0, 2)),
        ("LeakyRelu<alpha = 0.5>", (-4, 2), (-2 - 2, 2)),
        ("ThresholdedRelu<alpha = 1.0>", (-4, 2), (-4, 2)),
        ("Shrink<bias = 0.5, lambd = 0.5>", (1, 2), (0, 2.5)),
        ("Elu<alpha = 2.0>", (-9, 3), (-2, 3)),
        ("Celu<alpha = 2.0>", (-9, 3), (-2, 3)),
        ("Selu<alpha = 2.0, gamma = 3.0>", (-9, 3), (-6, 9)),
    ],
)
def test_the_bounds_are_what_the_ends_become(
    op_type: str, limits: Limits, expected: tuple[float, float]
) -> None:
    call = f"{op_type}(a)"
    assert_bounds(interval_of(f"y = {call}", limits), expected)


def test_results_that_are_positive_have_no_margin_below_0() -> None:
    for op_type in ("Exp", "Sigmoid", "Softplus"):
        assert interval_of(f"y = {op_type}(a)", (-900, 0)).low == 0


@pytest.mark.parametrize(
    ("op_type", "limits", "is_nan"),
    [
        ("Acos", (-1, 1), False),
        ("Acos", (-1, 2), True),
        ("Asin", (-2, 1), True),
        ("Atanh", (0, 1), False),
        ("Atanh", (0, 2), True),
        ("Acosh", (1, 2), False),
        ("Acosh", (0, 2), True),
        ("Log", (0, 1), False),
        ("Log", (-1, 1), True),
        ("Sqrt", (0, 1), False),
        ("Sqrt", (-1, 1), True),
        ("Cos", (-9, 9), False),
    ],
)
def test_outside_of_its_domain_a_function_is_nan(
    op_type: str, limits: Limits, is_nan: bool
) -> None:
    assert interval_of(f"y = {op_type}(a)", limits).may_be_nan is is_nan


def test_of_an_infinite_angle_there_is_no_cosine() -> None:
    assert interval_of("l = Log(a)  y = Cos(l)", (0, 1)).may_be_nan
    assert not interval_of("l = Log(a)  y = Cos(l)", (1, 2)).may_be_nan


def test_nan_makes_nan_and_is_no_number_of_some_kernels() -> None:
    for line, expected in (
        ("Sign(m)", (0, 1, True)),  # of NaN, kernels return 0 or NaN
        ("Relu(m)", (0, 7, True)),
        ("Cos(m)", (-1, 1, True)),
        ("Acosh(m)", (0, np.arccosh(7), True)),
        ("Log(m)", (math.log(5), math.log(7), True)),
        ("Sqrt(m)", (math.sqrt(5), math.sqrt(7), True)),
        ("HardSigmoid(m)", (0, 1, True)),
        ("Softsign(m)", (-1, 1, True)),
        ("Gelu(m)", (0, 7, True)),
        ("Clip(a, low, n)", (-1, 4, True)),
        ("Clip(a, n, high)", (-1, 4, True)),
        ("IsNaN(m)", (0, 1, False)),
        ("Hardmax(m)", (0, 1, True)),
        ("Tanh(m)", (math.tanh(5), 1, True)),
    ):
        nodes = f"n = Sqrt(a)  m = Add(n, five)  y = {line}"
        found = interval_of(nodes, (-1, 4), more=CLIP + " float five = {5},")
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4), line


def test_infinity_makes_nan_of_these() -> None:
    for line in ("HardSigmoid(l)", "Softsign(l)", "Cos(l)"):
        assert interval_of(f"l = Log(a)  y = {line}", (0, 1)).may_be_nan, line
    for line in ("Tanh(l)", "Sigmoid(l)", "Exp(l)", "Softplus(l)", "Relu(l)"):
        assert not interval_of(f"l = Log(a)  y = {line}", (0, 1)).may_be_nan, line


def test_the_bounds_of_a_swish_follow_its_slope() -> None:
    for alpha, limits, expected in (
        (2.0, (-9, 2), (-0.1395, 2)),
        (0.5, (-9, 2), (-0.558, 2)),
        (1.0, (0, 2), (0, 2)),
        (0.0, (-9, 2), (-9, 2)),
        (-1.0, (-9, 2), (-9, 2)),
    ):
        found = interval_of(f"y = Swish<alpha = {alpha}>(a)", limits, opset=24)
        assert_bounds(found, expected)


def test_what_is_cast_from_or_to_unknown_types_and_text() -> None:
    text = "(float[2] x) => (float[2] z) {{ a = Sigmoid(x)  u = acme.Any(x)  {}  z = Neg(a) }}"
    for nodes, expected in (
        ("y = Cast<to = 6>(u)", (-(2**31), 2**31 - 1, False)),
        ("y = Cast<to = 9>(u)", (0, 1, False)),
        ("y = Cast<to = 11>(u)", (-INF, INF, True)),
        ("y = Cast<to = 8>(a)", (-INF, INF, True)),
        ("y = CastLike(a, u)", (-INF, INF, True)),
        ("t = Cast<to = 8>(a)  y = Cast<to = 6>(t)", (-(2**31), 2**31 - 1, False)),
    ):
        assert interval_in(text.format(nodes)) == expected, nodes


def test_the_logarithm_of_0_is_infinite() -> None:
    assert interval_of("y = Log(a)", (0, 1)).low == -INF
    assert interval_of("y = Log(a)", (-2, 0)) == Interval(-INF, -INF, True)


@pytest.mark.parametrize(
    ("op_type", "ends"), [("Ceil", (-1, 2)), ("Floor", (-2, 1)), ("Round", (-2, 2))]
)
def test_fractions_are_rounded_at_the_ends(op_type: str, ends: Limits) -> None:
    found = interval_of(f"h = Div(a, two)  y = {op_type}(h)", (-3, 3), more="float two = {2},")
    assert_bounds(found, ends)


CLIP = "float low = {-1}, float high = {2},"


@pytest.mark.parametrize(
    ("call", "limits", "expected"),
    [
        ("Clip(a, low, high)", (-9, 9), (-1, 2)),
        ("Clip(a, low, high)", (0, 1), (0, 1)),
        ("Clip(a, low, high)", (5, 9), (2, 2)),
        ("Clip(a, low)", (-9, 9), (-1, 9)),
        ("Clip(a, , high)", (-9, 9), (-9, 2)),
        ("Clip(a)", (-9, 9), (-9, 9)),
        ("Clip(a, high, low)", (-9, 9), (-1, 2)),
    ],
)
def test_clip_limits_to_the_bounds_that_it_has(
    call: str, limits: Limits, expected: tuple[float, float]
) -> None:
    assert_bounds(interval_of(f"y = {call}", limits, more=CLIP), expected)


def test_bounds_of_an_old_clip_are_attributes() -> None:
    for attributes, expected in (
        ("<min = 2.5, max = 3.5>", (2.5, 3.5)),
        ("<min = 3.0>", (3, 4)),
        ("<max = 3.0>", (2, 3)),
        ("", (2, 4)),
    ):
        text = f"""(float[2,3,4] x) => (float[3] y) {{
            s = Shape(x)  c = Cast<to = 1>(s)  y = Clip{attributes}(c) }}"""
        assert interval_in(text, opset=10) == (*expected, False), attributes


def test_a_bound_that_may_be_nan_may_limit_nothing() -> None:
    found = interval_of("n = Sqrt(b)  y = Clip(a, n, high)", (-9, 9), (-1, 4), more=CLIP)
    assert (found.low, found.high, found.may_be_nan) == (-9, 9, True)


@pytest.mark.parametrize(
    ("to", "limits", "expected"),
    [
        (3, (-128, 127), (-128, 127)),
        (3, (-129, 0), (-128, 127)),
        (2, (-1, 4), (0, 255)),
        (9, (-1, 4), (0, 1)),
        (10, (-1, 4), (-1, 4)),
    ],
)
def test_a_cast_keeps_what_fits(to: int, limits: Limits, expected: Limits) -> None:
    assert_bounds(interval_of(f"y = Cast<to = {to}>(a)", limits), expected)


def test_a_cast_to_integers_cuts_fractions_off() -> None:
    found = interval_of("h = Div(a, two)  y = Cast<to = 6>(h)", (-3, 3), more="float two = {2},")
    assert (found.low, found.high) == (-1, 1)


def test_the_complement_of_integers() -> None:
    assert interval_of("y = BitwiseNot(a)", (3, 7), dtype=2)[:2] == (248, 252)
    assert interval_of("y = BitwiseNot(a)", (3, 7), dtype=6)[:2] == (-8, -4)


def test_dropout_in_training_may_be_anything() -> None:
    training = "bool t = {1}, float r = {0.5},"
    assert interval_of("y = Dropout(a, r, t)", (0, 1), more=training).high == INF
    assert_bounds(interval_of("y = Dropout(a)", (0, 1)), (0, 1))


def test_truth_is_0_or_1() -> None:
    assert interval_of("y = Less(a, b)", (0, 9), (0, 9)) == Interval(0, 1)
    assert interval_of("s = Sqrt(a)  y = Hardmax(s)", (-1, 9)) == Interval(0, 1, True)
    assert interval_of("y = Hardmax(a)", (-1, 9)) == Interval(0, 1)


def test_the_slope_of_a_prelu_is_an_operand() -> None:
    assert_bounds(interval_of("y = PRelu(a, b)", (-4, 2), (-1, 3)), (-12, 6))


def test_a_gate_of_minus_infinity_is_nan() -> None:
    assert interval_of("l = Log(a)  y = Mish(l)", (0, 1)).may_be_nan
    assert not interval_of("l = Log(a)  y = Mish(l)", (1, 2)).may_be_nan
