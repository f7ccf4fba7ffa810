"""Laws of arithmetic that hold bit for bit are proved, and those that do not are not."""

import numpy as np
import onnx
import pytest

from tests.certify.call import call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.evaluation.forms import Negative, WithoutSign
from tiered.certify.rules.bit_arithmetic import ARITHMETIC, add, div, neg, power, reciprocal, sub
from tiered.certify.rules.bit_elementwise import elementwise

NUMBERS = {"one": 1, "minus": -1, "two": 2, "three": 3, "four": 4, "zero": 0}
FRACTIONS = {"half": 0.5, "third": 0.33333334, "nought": -0.0, "big": 3e38, "small": 1e-45}


def text(nodes: str, dtype: str) -> str:
    numbers = NUMBERS | (FRACTIONS if dtype == "float" else {})
    if dtype == "float16":  # whose text has bits
        numbers = {name: int(np.float16(each).view(np.uint16)) for name, each in NUMBERS.items()}
    held = ", ".join(f"{dtype} {name} = {{{number}}}" for name, number in numbers.items())
    head = f"({dtype}[2,3] x, {dtype}[2,3] z) => ({dtype}[2,3] y)"
    return f"{head} <{held}> {{ {nodes} }}"


def are_equal(one: str, other: str, dtype: str = "float") -> bool:
    return proof(text(one, dtype), text(other, dtype)).domain == "bits"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y = Add(x, z)", "y = Add(z, x)"),
        ("y = Mul(x, z)", "y = Mul(z, x)"),
        ("y = Sub(x, z)", "n = Neg(z)  y = Add(x, n)"),
        ("y = Add(x, nought)", "y = Identity(x)"),
        ("y = Sub(x, zero)", "y = Identity(x)"),
        ("y = Mul(x, one)", "y = Identity(x)"),
        ("y = Mul(x, minus)", "y = Neg(x)"),
        ("y = Div(x, one)", "y = Identity(x)"),
        ("y = Div(x, two)", "y = Mul(x, half)"),
        ("n = Neg(x)  y = Neg(n)", "y = Identity(x)"),
        ("n = Neg(x)  m = Neg(z)  y = Mul(n, m)", "y = Mul(x, z)"),
        ("n = Neg(x)  y = Div(n, z)", "d = Div(x, z)  y = Neg(d)"),
        ("n = Neg(x)  y = Abs(n)", "y = Abs(x)"),
        ("y = Pow(x, one)", "y = Identity(x)"),
        ("y = Pow(x, two)", "y = Mul(x, x)"),
        ("y = Pow(x, three)", "q = Mul(x, x)  y = Mul(q, x)"),
        ("y = Reciprocal(x)", "y = Div(one, x)"),
        ("y = Pow(x, z)", "y = Pow(x, z)"),
        ("y = Sum(x, z)", "y = Add(x, z)"),
        ("y = Sum(x)", "y = Identity(x)"),
        ("y = Sum(x, z, x)", "a = Add(x, z)  y = Add(a, x)"),
    ],
)  # fmt: skip
def test_a_law_of_ieee_754_is_proved(one: str, other: str) -> None:
    assert are_equal(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("y = Add(x, zero)", "y = Identity(x)"),  # -0.0 + 0.0 is 0.0
        ("y = Sub(x, nought)", "y = Identity(x)"),
        ("y = Sub(x, z)", "y = Sub(z, x)"),
        ("y = Div(x, z)", "y = Div(z, x)"),
        ("y = Div(x, three)", "y = Mul(x, third)"),
        ("y = Div(x, big)", "y = Mul(x, small)"),
        ("y = Pow(x, four)", "q = Mul(x, x)  y = Mul(q, q)"),
        ("y = Pow(x, two)", "y = Identity(x)"),
        ("y = Pow(x, three)", "y = Mul(x, x)"),
        ("y = Sum(x, z, x)", "a = Add(x, x)  y = Add(a, z)"),
        ("y = Neg(x)", "y = Identity(x)"),
        ("n = Neg(x)  y = Add(n, z)", "a = Add(x, z)  y = Neg(a)"),
    ],
)
def test_what_rounds_or_has_another_sign_is_not(one: str, other: str) -> None:
    assert not are_equal(one, other)


@pytest.mark.parametrize(
    ("dtype", "one", "other", "expected"),
    [
        ("int64", "y = Add(x, zero)", "y = Identity(x)", True),
        ("int64", "n = Neg(x)  y = Neg(n)", "y = Identity(x)", True),
        ("int8", "n = Neg(x)  y = Mul(n, minus)", "y = Identity(x)", True),
        ("int32", "y = Div(x, two)", "y = Mul(x, two)", False),
        ("int64", "n = Neg(x)  y = Div(n, z)", "d = Div(x, z)  y = Neg(d)", False),
        ("int8", "n = Neg(x)  y = Mul(n, z)", "n = Neg(x)  y = Mul(z, n)", True),
        ("int64", "y = Sub(x, z)", "n = Neg(z)  y = Add(x, n)", True),
        ("float16", "y = Pow(x, two)", "y = Mul(x, x)", True),
        ("float16", "y = Pow(x, three)", "q = Mul(x, x)  y = Mul(q, x)", False),
    ],
)
def test_other_dtypes_have_laws_of_their_own(
    dtype: str, one: str, other: str, expected: bool
) -> None:
    assert are_equal(one, other, dtype) is expected


@pytest.mark.parametrize(
    ("dtype", "is_sum"), [("FLOAT", True), ("INT64", True), ("UINT8", False), ("UINT64", False)]
)
def test_a_difference_is_a_sum_where_there_are_negatives(dtype: str, is_sum: bool) -> None:
    kind = int(getattr(onnx.TensorProto, dtype))
    node = call("Sub", free("x", 2, dtype=kind), free("z", 2, dtype=kind))
    sub(node)
    assert ("sub-adds-negative" in node.axioms) is is_sum


def test_a_sum_with_zero_is_its_operand_but_for_signs() -> None:
    x, row = free("x", 2, 3), free("row", 3)
    zero, zeros = known(0, np.float32), known(np.zeros((2, 3)), np.float32)
    assert only(add(call("Add", x, zero))).form == WithoutSign(x)
    assert only(add(call("Add", zero, x))).form == WithoutSign(x)
    assert only(sub(call("Sub", x, known(-0.0, np.float32)))).form == WithoutSign(x)
    assert only(sub(call("Sub", zero, x))).form is None
    assert only(add(call("Add", row, zeros))).form is None
    assert only(add(call("Add", zeros, zero))).form is None


def test_floats_of_8_bits_have_no_laws_of_signs() -> None:
    x, z = (free(name, 2, dtype=int(onnx.TensorProto.FLOAT8E4M3FN)) for name in "xz")
    quotient, inverse = call("Div", x, z), call("Reciprocal", x)
    assert (only(div(quotient)).terms != only(elementwise(quotient)).terms).all()
    assert quotient.axioms == set()
    assert (only(reciprocal(inverse)).terms == only(elementwise(inverse)).terms).all()
    assert only(neg(call("Neg", x))).form is None


def test_a_negative_is_remembered_of_unknown_integers_alone() -> None:
    x = free("x", 2, dtype=int(onnx.TensorProto.INT32))
    assert only(neg(call("Neg", x))).form == Negative(x)
    assert only(neg(call("Neg", known([1, -2], np.int32)))).form is None


def test_constants_are_computed_at_once() -> None:
    numbers = {"Neg": [-1, -4], "Abs": [1, 4], "Reciprocal": [1, 0.25]}
    for op, expected in numbers.items():
        made = only(ARITHMETIC[op](call(op, known([1, 4], np.float32)))).known
        assert made is not None
        assert made.tolist() == expected, op


def test_exponents_of_several_numbers_are_no_product() -> None:
    x = free("x", 2)
    node = call("Pow", x, known([2, 2], np.float32))
    assert only(power(node)).shape == (2,)
    assert node.axioms == set()
    assert only(power(call("Pow", known([3], np.float32), known(2)))).known is not None
