"""Which products are quantised, and between which values."""

import pytest

from tests.small import made_by, named, parsed
from tiered.numerics.quantization.quantization_plan import (
    NO_PRODUCTS,
    QUANTIZED_ALREADY,
    Plan,
    activated,
    is_layer,
    is_quantized,
    plan_of,
    without,
)
from tiered.numerics.quantization.scheme import Scheme, scheme_of

TWO = """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
    a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Relu(a) }", "y"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Clip(a) }", "y"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }", "a"),
        ("(float[2] x) => (float[2] y) { a = Neg(x) y = own.Relu(a) }", "a"),
        ("(float[2] x) => (float[2] y, float[2] z) { a = Neg(x) y = Relu(a) z = Abs(a) }", "a"),
        ("(float[2] x) => (float[2] y, float[2] a) { a = Neg(x) y = Relu(a) }", "a"),
        # A limit of the Clip, not what it clips.
        ("(float x, float[2] z) => (float[2] y) { a = Neg(x) y = Clip(z, a) }", "a"),
        (
            """(float[2] x, bool c) => (float[2] y) { a = Neg(x) y = If (c) <
            then_branch = t () => (float[2] u) { u = Relu(a) },
            else_branch = e () => (float[2] v) { v = Identity(x) }> }""",
            "a",
        ),
    ],
)
def test_the_activation_that_alone_reads_a_result_comes_before_its_quantisation(
    text: str, expected: str
) -> None:
    of = parsed(text)
    assert activated(named(of, "a")) is named(of, expected)


def test_a_value_and_those_that_share_its_scale_have_one_representative() -> None:
    of = parsed("(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Neg(b) }")
    a, b, y = (named(of, name) for name in ("a", "b", "y"))
    plan = Plan([], [], groups={a: b, b: y, y: y})
    assert {plan.group(each) for each in (a, b, y)} == {y}
    assert plan.group(named(of, "x")) is named(of, "x")


def test_products_of_floats_are_units_with_their_weights() -> None:
    of = parsed(TWO)
    plan = plan_of(of, Scheme())
    assert [unit.node.output.name for unit in plan.units] == ["a", "y"]
    assert [unit.weights for unit in plan.units] == [[named(of, "w")]] * 2
    assert [unit.data for unit in plan.units] == [[named(of, "x")], [named(of, "b")]]
    assert plan.why_nothing() is None


def test_what_stays_float_is_kept_with_its_reason() -> None:
    of = parsed(TWO)
    first = made_by(of, "a")
    plan = plan_of(of, Scheme(), lambda node: "the user keeps it" if node is first else "")
    assert [unit.node.output.name for unit in plan.units] == ["y"]
    assert plan.kept == [(first, "the user keeps it")]
    left = without(plan, {made_by(of, "y"): "it loses too much"}, Scheme())
    assert left.units == []
    assert [reason for _, reason in left.kept] == ["the user keeps it", "it loses too much"]
    assert "no product is quantised" in str(left.why_nothing())
    assert [unit.node.output.name for unit in plan.units] == ["y"], "the first plan is as it was"


def test_a_model_without_products_says_so() -> None:
    of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    assert plan_of(of, scheme_of(None)).why_nothing() is NO_PRODUCTS


def test_a_quantised_model_stays_and_needs_no_reason() -> None:
    of = parsed(
        """(float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}, float s = {0.1}> {
        q = QuantizeLinear(x, s) d = DequantizeLinear(q, s) y = MatMul(d, w) }"""
    )
    assert is_quantized(of)
    plan = plan_of(of, Scheme())
    assert [reason for _, reason in plan.kept] == [QUANTIZED_ALREADY]
    assert plan.why_nothing() is None


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("MatMul(x, x)", True),
        ('Einsum<equation = "ij,jk->ik">(x, x)', True),
        ('Einsum<equation = "ij->ji">(x)', False),
        ("Add(x, x)", False),
        ("own.MatMul(x, x)", False),
    ],
)
def test_a_layer_sums_products_of_two(operator: str, expected: bool) -> None:
    of = parsed(f"(float[2,2] x) => (float[2,2] y) {{ y = {operator} }}")
    assert is_layer(made_by(of, "y")) is expected
