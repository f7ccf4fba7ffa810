"""x * Sigmoid(alpha * x): which alpha it has, and why none is known."""

import pytest

from tests.small import made_by, named, parsed
from tiered.rewriter.idioms.activation import swish_factor
from tiered.rewriter.skip import Skip

HEAD = (
    "(%s[2] x) => (%s y) <%s%s alpha = {%s}> { a = Mul(x, alpha)  s = Sigmoid(a)  y = Mul(x, s) }"
)


@pytest.mark.parametrize(
    ("dtype", "shape", "numbers", "expected"),
    [
        ("float", "", "1.5", 1.5),
        ("float", "[1]", "-2", -2.0),
        ("float", "[2]", "1,1", "alpha is not one number"),
        ("float", "[1,1]", "1", "a constant may give x more dims"),
        ("double", "", "0.5", 0.5),
        ("double", "", "0.1", "alpha is a double that no attribute holds"),
    ],
)
def test_a_factor_is_one_number_that_an_attribute_holds(
    dtype: str, shape: str, numbers: str, expected: float | str
) -> None:
    result = f"{dtype}[1,2]" if shape == "[1,1]" else f"{dtype}[2]"
    of = parsed(HEAD % (dtype, result, dtype, shape, numbers))
    found = swish_factor(made_by(of, "y"), named(of, "x"), named(of, "alpha"))
    assert (str(found) if isinstance(found, Skip) else found) == expected


def test_without_a_constant_the_factor_is_one() -> None:
    of = parsed("(float[2] x) => (float[2] y) { s = Sigmoid(x)  y = Mul(x, s) }")
    assert swish_factor(made_by(of, "y"), named(of, "x"), None) == 1.0


def test_a_factor_that_a_run_computes_is_not_known() -> None:
    of = parsed("(float[2] x, float z) => (float[2] y) { a = Mul(x, z)  y = Mul(x, a) }")
    found = swish_factor(made_by(of, "y"), named(of, "x"), named(of, "z"))
    assert str(found) == "alpha is not one number"
