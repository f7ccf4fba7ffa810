"""Small constants that a narrower type loses keep those that need them in float."""

import pytest

from tests.analysis.roles.found import roles_in
from tests.small import made_by, parsed
from tiered.analysis.roles.epsilons import epsilon_roles, statistics_of
from tiered.analysis.roles.role import Narrow
from tiered.graph import DataType

HEAD = """(float[2,4] x, float[2,4] z) => (float[2,4] y) <float e = {1e-9}, float k = {1e-3},
    float two = {2}, float half = {0.5}, float minus = {-0.5}, float zero = {0},
    float big = {1e6}, float[4] one = {1,1e-9,1,1}> """


def found(nodes: str, **how: object) -> dict[str, str]:
    return roles_in(f"{HEAD}{{ {nodes} }}", epsilon_roles, **how)  # type: ignore[arg-type]  # options by name


EPSILON, STATISTIC = "epsilon", "statistic"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("b = Add(x, e)  y = Div(z, b)", {"b": EPSILON, "y": EPSILON}),
        ("b = Add(x, k)  y = Div(z, b)", {}),
        ("b = Add(x, one)  y = Div(z, b)", {"b": EPSILON, "y": EPSILON}),
        ("b = Add(x, e)  y = Log(b)", {"b": EPSILON, "y": EPSILON}),
        ("b = Add(x, e)  y = Reciprocal(b)", {"b": EPSILON, "y": EPSILON}),
        ("b = Add(x, e)  y = Pow(b, minus)", {"b": EPSILON, "y": EPSILON}),
        # nobody feels its loss, but all of the constant is lost
        ("b = Add(x, e)  y = Exp(b)", {"b": EPSILON}),
        ("b = Add(x, one)  y = Exp(b)", {}),
        # on the way: movement, bounds, factors that leave it small
        ("b = Add(x, e)  t = Identity(b)  y = Div(z, t)", dict.fromkeys("bty", EPSILON)),
        ("b = Add(x, e)  t = Max(b, zero)  y = Div(z, t)", dict.fromkeys("bty", EPSILON)),
        ("b = Add(x, e)  t = Mul(b, two)  y = Div(z, t)", dict.fromkeys("bty", EPSILON)),
        # a factor that brings it into range
        ("b = Add(x, one)  t = Mul(b, big)  y = Div(z, t)", {}),
        # a root of it is in range: what follows is not felt
        ("b = Add(x, e)  s = Sqrt(b)  y = Div(z, s)", {"b": EPSILON, "s": EPSILON}),
        # what it is added to are statistics
        (
            "q = Mul(x, x)  m = ReduceMean(q)  b = Add(m, e)  y = Div(z, b)",
            {"b": EPSILON, "y": EPSILON, "m": STATISTIC, "q": STATISTIC},
        ),
        ("q = Sigmoid(x)  b = Add(q, e)  y = Div(z, b)", {"b": EPSILON, "y": EPSILON}),
    ],
)
def test_the_nodes_that_need_a_small_constant(nodes: str, expected: dict[str, str]) -> None:
    assert found(nodes) == expected


def test_epsilons_of_attributes_are_lost_with_the_variance_that_they_are_added_to() -> None:
    text = """(float[1,2,3] x) => (float[1,2,3] y) <float[2] s = {1,1}, float[2] v = {VALUES}> {
        y = OP }"""

    def roles(call: str, values: str) -> dict[str, str]:
        return roles_in(text.replace("OP", call).replace("VALUES", values), epsilon_roles)

    norm = "BatchNormalization<epsilon = 1e-9>(x, s, s, s, v)"
    assert roles(norm, "1,1") == {}
    assert roles(norm, "1,0") == {"y": EPSILON}
    assert roles(norm.replace("1e-9", "1e-5"), "1,0") == {}
    assert roles("InstanceNormalization<epsilon = 1e-9>(x, s, s)", "1,1") == {"y": EPSILON}
    assert roles("InstanceNormalization<epsilon = 1e-5>(x, s, s)", "1,1") == {}
    assert roles("MeanVarianceNormalization<axes = [0,2]>(x)", "1,1") == {"y": EPSILON}


def test_constants_of_nodes_that_the_user_forces_do_not_count() -> None:
    assert found("b = Add(x, e)  y = Div(z, b)", ignored=["b"]) == {}


def test_a_type_with_the_range_of_floats_loses_none() -> None:
    assert found("b = Add(x, e)  y = Div(z, b)", narrow=Narrow.of(DataType.BFLOAT16)) == {}


def test_statistics_are_sums_and_squares_behind_movement() -> None:
    model = parsed(
        """(float[2,4] x, float[2,4] z) => (float[2,4] y) {
        d = Sub(x, z)  q = Mul(d, d)  t = Identity(q)  m = ReduceMean(t)
        p = Mul(x, z)  y = Add(m, p) }"""
    )
    names = {node.output.name for node in statistics_of(made_by(model, "y"))}
    assert names == {"q", "t", "m"}
