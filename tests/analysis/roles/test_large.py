"""Constants beyond the range of a narrower type keep those around them in float."""

import pytest

from tests.analysis.roles.found import roles_in
from tiered.analysis.roles.large import large_roles
from tiered.analysis.roles.masks import LARGEST
from tiered.analysis.roles.role import Narrow
from tiered.graph import DataType

HEAD = """(float[2] x, float[2] z) => (float[2] y) <float c = {1e6}, float s = {3},
    float m = {3.4e38}, float top = {65504}, float low = {-65504}, float[2] mask = {-1e6,0},
    float[2] own> """


def found(nodes: str, **how: object) -> set[str]:
    roles = roles_in(f"{HEAD}{{ {nodes} }}", large_roles, **how)  # type: ignore[arg-type]  # options by name
    assert set(roles.values()) <= {"large constant"}
    return set(roles)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # what computes the data, the node, and what reads the result
        ("a = Neg(x)  b = Add(a, c)  y = Exp(b)", {"a", "b", "y"}),
        ("a = Neg(x)  b = Add(a, s)  y = Exp(b)", set()),
        # through movement on both sides
        ("a = Neg(x)  t = Identity(a)  b = Add(t, c)  u = Identity(b)  y = Exp(u)",
         {"a", "t", "b", "u", "y"}),
        # a step that stays large is followed, what it is added to is not
        ("b = Add(x, c)  r = Relu(b)  y = Exp(r)", {"b", "r", "y"}),
        ("b = Add(x, c)  r = Sigmoid(b)  y = Exp(r)", {"b", "r"}),
        ("b = Add(x, c)  r = Mul(b, z)  y = Exp(r)", {"b", "r"}),
        # a divisor makes no large result
        ("a = Neg(x)  b = Div(a, c)  y = Exp(b)", {"a", "b"}),
        # a comparison
        ("a = Neg(x)  l = Less(a, c)  y = Where(l, x, z)", {"a", "l"}),
        # no bound at all
        ("a = Neg(x)  b = Min(a, m)  y = Exp(b)", set()),
        # attributes that data is compared with
        ("a = Neg(x)  b = ThresholdedRelu<alpha = 1e6>(a)  y = Exp(b)", {"a", "b", "y"}),
        ("a = Neg(x)  b = Shrink<lambd = 1e6>(a)  y = Exp(b)", {"a", "b", "y"}),
        ("a = Neg(x)  b = Shrink<lambd = 1.0>(a)  y = Exp(b)", set()),
        # exactly the largest number
        ("a = Neg(x)  b = Add(a, top)  y = Exp(b)", set()),
        ("b = ThresholdedRelu<alpha = 65504.0>(x)  y = Exp(b)", set()),
        ("b = Add(x, c)  r = Clip(b, low, top)  y = Exp(r)", {"b", "r"}),
        # a mask, beside another constant and where it is none
        ("a = Add(x, mask)  y = Softmax(a)", set()),
        ("a = Add(x, mask)  b = Add(a, c)  y = Softmax(b)", {"a", "b", "y"}),
        ("a = Add(x, mask)  d = Softmax(a)  b = Mul(z, mask)  y = Tanh(b)", {"b", "y"}),
        # movement of several tensors
        ("b = Add(x, c)  l = Less(x, z)  r = Where(l, b, z)  y = Exp(r)", {"b", "r", "y"}),
        ("a = Neg(x)  own = acme.Identity(a)  b = Add(own, c)  y = Exp(b)", {"own", "b", "y"}),
    ],
)  # fmt: skip
def test_the_nodes_around_a_large_constant(nodes: str, expected: set[str]) -> None:
    assert found(nodes) == expected


def test_what_is_proven_to_be_in_range_is_not_followed() -> None:
    nodes = "b = Add(x, c)  k = Clip(b, s, s)  y = Exp(k)"
    assert "y" not in found(nodes)


def test_constants_of_nodes_that_the_user_forces_do_not_count() -> None:
    assert found("b = Add(x, c)  y = Exp(b)", ignored=["b"]) == set()
    assert found("b = ThresholdedRelu<alpha = 1e6>(x)  y = Exp(b)", ignored=["b"]) == set()


def test_a_type_up_to_the_least_overflow_loses_larger_numbers() -> None:
    nodes, narrow = "a = Neg(x)  b = Add(a, m)  y = Exp(b)", Narrow(DataType.FLOAT16, LARGEST)
    assert found(nodes, narrow=narrow) == {"a", "b", "y"}


def test_a_type_with_the_range_of_floats_loses_none() -> None:
    assert found("b = Add(x, c)  y = Exp(b)", narrow=Narrow.of(DataType.BFLOAT16)) == set()
