"""Numbers that a Softmax makes 0, the limits below which elements are masked, and sums of two."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.analysis.roles.found import roles_in
from tests.small import parsed
from tiered.analysis.roles.masks import LARGEST, mask_limits, mask_roles
from tiered.analysis.roles.role import Narrow
from tiered.graph import DataType

INF = float("inf")
HEAD = """(float[2] x, float[2] z, bool[2] c) => (float[2] y) <float[2] k = {-20000,0},
    float[2] h = {0,20000}, float[2] w = {-1e9,0}, float two = {2}, float one = {1},
    float low = {-3.4e38}, float minus = {-2}> """


def limits(
    nodes: str, samples: tuple[Mapping[str, Any], ...] = (), head: str = HEAD
) -> dict[str, float]:
    """Return the limits of values by name."""
    found = mask_limits(parsed(f"{head}{{ {nodes} }}"), samples)
    return {value.name: limit for value, limit in found.items()}


@pytest.mark.parametrize("end", ["Softmax(a)", "LogSoftmax(a)", "Exp(a)"])
def test_half_of_the_number_of_a_mask_is_the_limit(end: str) -> None:
    assert limits(f"a = Add(x, k)  y = {end}") == {"k": -1e4, "a": -1e4}


@pytest.mark.parametrize("end", ["Tanh(a)", "Neg(a)", "com.microsoft.Softmax(a)"])
def test_what_reaches_no_softmax_is_no_mask(end: str) -> None:
    assert limits(f"a = Add(x, k)  y = {end}") == {}


@pytest.mark.parametrize(("number", "limit"), [(-1e4, -5e3), (-9999, None), (-INF, -LARGEST)])
def test_a_mask_is_minus_10000_or_less(number: float, limit: float | None) -> None:
    head = f"(float[2] x) => (float[2] y) <float[2] k = {{0,{number}}}> "
    found = limits("a = Add(x, k)  y = Softmax(a)", head=head)
    assert found == ({} if limit is None else {"k": limit, "a": limit})


def test_a_limit_of_the_lowest_float_is_bounded() -> None:
    assert limits("a = Where(c, x, low)  y = Softmax(a)") == {"low": -LARGEST, "a": -LARGEST}


def test_nan_in_a_mask_is_passed_over() -> None:
    head = "(float[2] x) => (float[2] y) <float[2] k = {nan,-20000}> "
    assert limits("a = Add(x, k)  y = Softmax(a)", head=head) == {"k": -1e4, "a": -1e4}


def test_integers_and_empty_constants_are_no_masks() -> None:
    head = """(int64[2] x) => (float[2] y) <int64[2] k = {-20000,0}, float[0] e = {}> """
    nodes = "a = Add(x, k)  f = Cast<to=1>(a)  g = Concat<axis=0>(f, e)  y = Softmax(g)"
    assert limits(nodes, head=head) == {}


@pytest.mark.parametrize(
    "line",
    ["Identity(k)", "Reshape(k, s)", "Cast<to=1>(k)", "Clip(k)", "Min(k, x)", "Max(k, low)"],
)
def test_movement_and_bounds_carry_a_mask(line: str) -> None:
    head = HEAD.replace(" <", " <int64[1] s = {-1}, ")
    found = limits(f"b = {line}  a = Add(x, b)  y = Softmax(a)", head=head)
    assert found["b"] == found["a"] == -1e4


@pytest.mark.parametrize("line", ["Abs(k)", "Relu(k)", "Pow(k, two)", "Mod<fmod=1>(k, two)"])
def test_other_operators_carry_none(line: str) -> None:
    assert limits(f"b = {line}  a = Add(x, b)  y = Softmax(a)") == {}


def test_of_two_masks_the_weaker_one_is_the_limit() -> None:
    found = limits("b = Add(x, w)  a = Add(b, k)  y = Softmax(a)")
    assert found == {"w": -5e8, "b": -5e8, "k": -1e4, "a": -1e4}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = Sub(x, h)", {"h": -INF, "a": -1e4}),
        ("b = Neg(h)  a = Add(x, b)", {"h": -INF, "b": -1e4, "a": -1e4}),
        ("b = Neg(k)  a = Sub(x, b)", {"k": -1e4, "b": -INF, "a": -1e4}),
        ("a = Sub(k, x)", {"k": -1e4, "a": -1e4}),
        ("a = Sub(x, k)", {}),
        ("a = Add(x, h)", {}),
    ],
)
def test_what_is_subtracted_is_a_mask_by_its_opposite(
    nodes: str, expected: dict[str, float]
) -> None:
    assert limits(f"{nodes}  y = Softmax(a)") == expected


@pytest.mark.parametrize(
    ("line", "limit"),
    [("Mul(b, two)", -2e4), ("Mul(two, b)", -2e4), ("Div(b, two)", -5e3), ("Mul(b, z)", -1e4),
     ("Mul(b, minus)", -1e4), ("Div(b, z)", -1e4)],
)  # fmt: skip
def test_a_positive_factor_scales_the_limit(line: str, limit: float) -> None:
    assert limits(f"b = Add(x, k)  a = {line}  y = Softmax(a)")["a"] == limit


def test_a_divisor_is_no_mask() -> None:
    assert limits("a = Div(x, k)  y = Softmax(a)") == {}


@pytest.mark.parametrize("line", ["Mul(n, t)", "Mul(t, n)"])
def test_a_factor_of_a_difference_may_have_either_sign(line: str) -> None:
    """(c - 1) * 20000 is 0 or a mask."""
    head = HEAD.replace(" <", " <float t = {20000}, ")
    found = limits(f"n = Sub(z, one)  b = {line}  a = Add(x, b)  y = Softmax(a)", head=head)
    assert found == {"t": -INF, "b": -1e4, "a": -1e4}


def test_an_input_is_a_mask_by_its_samples() -> None:
    nodes = "a = Add(x, z)  y = Softmax(a)"
    mask = np.array([-3e4, 0], np.float32)
    assert limits(nodes) == {}
    assert limits(nodes, ({"z": mask}, {"x": mask, "z": mask / 2})) == {
        "z": -7500, "x": -1.5e4, "a": -7500,
    }  # fmt: skip
    assert limits(nodes, ({"z": [-3e4, 0]}, {"other": mask})) == {}


def test_samples_are_of_the_inputs_of_the_model_not_of_a_body() -> None:
    nodes = """d = Neg(x)  e, y = Scan<num_scan_inputs = 1, body = b (float[2] q, float i) =>
        (float[2] r, float o) { r = Softmax(q)  o = Neg(i) }>(d, x)"""
    mask = np.array([-3e4, 0], np.float32)
    assert limits(nodes, ({"q": mask, "d": mask},)) == {}


def test_an_absent_operand_is_no_mask() -> None:
    found = limits("b = Clip(k, , two)  a = Add(x, b)  y = Softmax(a)")
    assert found == dict.fromkeys(("k", "b", "a"), -1e4)


def test_the_default_of_an_input_is_a_mask_too() -> None:
    head = "(float[2] x, float[2] z = {-20000,0}) => (float[2] y) "
    assert limits("a = Add(x, z)  y = Softmax(a)", head=head) == {"z": -1e4, "a": -1e4}


def test_the_mask_of_an_attention_is_its_fourth_operand() -> None:
    head = """(float[1,1,2,2] q, float[2,2] x) => (float[1,1,2,2] y)
        <float[2,2] k = {-20000,0,0,0}> """
    nodes = "m = Add(x, k)  y = Attention(q, q, q, m)"
    assert limits(nodes, head=head) == {"k": -1e4, "m": -1e4}
    assert limits("m = Add(q, k)  y = Attention(m, q, q)", head=head) == {}


def test_a_mask_that_a_body_captures_is_found() -> None:
    nodes = """b = Add(x, k)  d = Cast<to=9>(one)
        y = If(d) <then_branch = t () => (float[2] p) { p = Softmax(b) },
                   else_branch = e () => (float[2] q) { q = Neg(x) }>"""
    assert limits(nodes) == {"k": -1e4, "b": -1e4}


# --- two masks ------------------------------------------------------------------------------------

TWO = """(float[2] x, float[2] z) => (float[2] y) <float[2] k = {-30000,0}, float[2] m = {NUMBER,0},
    float[2] h = {30000,0}> """


def roles(
    nodes: str, number: float = -35505, narrow: DataType = DataType.FLOAT16, wide: str = "float"
) -> set[str]:
    text = f"{TWO.replace('NUMBER', str(number)).replace('float', wide)}{{ {nodes} }}"
    found = roles_in(
        text, lambda model, half, ignored: mask_roles(model, half), narrow=Narrow.of(narrow)
    )
    assert {*found.values()} <= {"mask"}
    return set(found)


SUM = "a = Add(x, k)  b = Add(a, m)  y = Softmax(b)"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(-35504, set()), (-35505, {"b", "y"}), (-1e29, {"b", "y"}), (-1e30, set()), (-3e38, set())],
)
def test_a_sum_of_two_masks_beyond_the_range_stays_wide_up_to_the_softmax(
    number: float, expected: set[str]
) -> None:
    assert roles(SUM, number) == expected
    assert roles(SUM, number, wide="double") == expected  # -1e30 is exact there


def test_a_type_of_the_range_of_floats_holds_the_sum() -> None:
    assert roles(SUM, -1e9, DataType.BFLOAT16) == set()


def test_one_mask_alone_is_held() -> None:
    assert roles("a = Add(x, m)  y = Softmax(a)", -1e9) == set()


def test_what_reads_the_sum_stays_wide_up_to_what_makes_no_score() -> None:
    nodes = "a = Add(k, m)  r = Reshape(a, s)  b = Add(x, r)  p = Softmax(b)  y = Neg(p)"
    # The Neg reads probabilities; it is on the way, as it may negate a mask.
    head = TWO.replace("NUMBER", "-35505").replace(" <", " <int64[1] s = {-1}, ")
    found = roles_in(f"{head}{{ {nodes} }}", lambda model, half, ignored: mask_roles(model, half))
    assert set(found) == {"a", "r", "b", "p", "y"}
    found = roles_in(
        f"{head}{{ {nodes.replace('Neg(p)', 'Tanh(p)')} }}",
        lambda model, half, ignored: mask_roles(model, half),
    )
    assert set(found) == {"a", "r", "b", "p"}


def test_a_mask_that_is_subtracted_has_no_known_size() -> None:
    assert roles("a = Add(x, k)  b = Sub(a, h)  y = Softmax(b)") == {"b", "y"}
    assert roles("n = Neg(h)  b = Sub(n, h)  y = Softmax(b)") == {"b", "y"}
    assert roles("n = Add(h, h)  b = Sub(x, n)  y = Softmax(b)") == set()


def test_products_and_bounds_of_two_masks_are_no_sums() -> None:
    both = "p = Add(x, k)  q = Add(z, m)  r = Softmax(p)  s = Softmax(q)"
    assert roles(f"{both}  y = acme.Add(k, m)") == set()
    assert roles(f"{both}  y = Add(k, m)") == {"y"}
    assert roles("a = Add(x, k)  b = Max(a, m)  y = Softmax(b)") == set()
