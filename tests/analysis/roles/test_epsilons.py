"""Small constants that a narrower type loses keep those that need them in float."""

import pytest

from tests.analysis.roles.found import HALF, roles_in
from tests.small import made_by, parsed
from tiered.analysis.roles import epsilons
from tiered.analysis.roles.epsilons import epsilon_roles, statistics_of
from tiered.analysis.roles.role import Narrow
from tiered.graph import DataType

HEAD = """(float[2,4] x, float[2,4] z) => (float[2,4] y) <float e = {1e-9}, float k = {1e-3},
    float two = {2}, float half = {0.5}, float minus = {-0.5}, float zero = {0},
    float big = {1e6}, float[4] one = {1,1e-9,1,1}, float f = {1e-6}, float r = {3e-5},
    float third = {1.5}, float neg = {-1e-9}, float[2] mixed = {0,1e-9}, float[0] none = {},
    float[3] r5 = {1,1e-5,1}, float tiny = {8.5e-8},
    float[3] r0 = {0,1e-5,1}, float[2] r2 = {1,2e-5}, float unit = {1}> """


FILL = "ConstantOfShape<value = float[1] {{{}}}>(s)"


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
    assert roles("LayerNormalization<epsilon = 1e-9>(x, x)", "1,1") == {}
    assert roles("Unheard<epsilon = 1e-9>(x)", "1,1") == {}


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
    for nodes, expected in (
        ("q = Abs(x)  y = Clip(q, , m)", {"q"}),
        ("q = own.Abs(x)  y = Add(q, z)", set()),
        ("q = own.Identity(x)  y = Add(q, z)", set()),
    ):
        model = parsed(f"(float[2] x, float m, float[2] z) => (float[2] y) {{ {nodes} }}")
        assert {node.output.name for node in statistics_of(made_by(model, "y"))} == expected, nodes


def test_how_far_the_loss_of_a_small_constant_is_felt() -> None:
    for nodes, needed, statistics in (
        ("b = Add(x, r0)  t = Reciprocal(b)  y = Mul(z, t)", "bty", ""),
        ("b = Add(x, r2)  t = Reciprocal(b)  y = Mul(z, t)", "", ""),
        ("b = Add(x, one)  t = Identity(b)  s = Identity(b)  u = Add(t, s)  y = Log(u)",
         "bstuy", ""),
        ("b = Add(x, one)  t = Pow(b, unit)  y = Sigmoid(t)", "", ""),
        ("b = Add(x, one)  t = Pow(b, third)  y = Sigmoid(t)", "", ""),
        ("b = Add(x, e)  y = Div(z, b)", "by", ""),
        ("b = Add(x, f)  y = Div(z, b)", "", ""),
        ("b = Add(x, r)  y = Div(z, b)", "", ""),
        ("b = Add(x, neg)  y = Div(z, b)", "by", ""),
        ("b = Add(x, zero)  y = Div(z, b)", "", ""),
        ("b = Add(x, mixed)  y = Div(z, b)", "by", ""),
        ("b = Add(x, r5)  y = Reciprocal(b)", "", ""),
        ("b = Add(x, r5)  y = Log(b)", "", ""),
        ("b = Add(x, r5)  t=Mul(b,two) y = Reciprocal(t)", "", ""),
        ("b = Add(x, one)  t = Mul(b, two)  y = Div(z, t)", "bty", ""),
        ("b = Add(x, one)  t = Mul(b, zero)  y = Div(z, t)", "", ""),
        ("b = Add(x, one)  t = Div(b, two)  y = Div(z, t)", "bty", ""),
        ("b = Add(x, one)  t = Div(b, zero)  y = Div(z, t)", "", ""),
        ("b = Add(x, one)  t = Mul(b, z)  y = Div(z, t)", "bty", ""),
        ("b = Add(x, one)  t = Div(b, z)  y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Div(two, b)  y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Div(k, b)  y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Max(b, k) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Clip(b, k) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Min(b, k) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Add(b, k) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Sub(b, k) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Neg(b) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Pow(b, two)  y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Pow(b, half)  y = Log(t)", "bt", ""),
        ("b = Add(x, one)  t = Pow(b, third)  y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Pow(b, z)  y = Log(t)", "bt", ""),
        ("y = Pow(one, x)", "y", ""),
        ("y = Pow(x, one)", "", ""),
        ("y = Pow(x, e)", "y", ""),
        ("y = Pow(e, x)", "y", ""),
        ("b = Add(x, one)  t = Pow(z, b)  y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Reciprocal(b)  y = Mul(z, t)", "bty", ""),
        ("b = Add(x, one)  t = Reciprocal(b)  y = Sigmoid(t)", "bty", ""),
        ("b = Add(x, one)  t = Reciprocal(b) s = Reciprocal(t) y = Sigmoid(s)", "bst", ""),
        ("b = Add(x, one)  s = Sqrt(b) y = Reciprocal(s)", "bs", ""),
        ("b = Add(x, one) s = Sqrt(b) t = Mul(s, k) y = Reciprocal(t)", "bs", ""),
        ("b = Add(x, one)  t = ReduceMax(b) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = ReduceSum(b) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = ReduceMean(b) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Relu(b) y = Log(t)", "bty", ""),
        ("b = Add(x, one)  t = Sigmoid(b) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = MatMul(b, z) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = own.Any(b) y = Log(t)", "", ""),
        ("b = Add(x, one)  t = Identity(b) s = Log(b)  y = Add(t, s)", "bs", ""),
        ("b = Add(x, one)  t = Identity(b) u = Add(t, b) y = Log(u)", "btuy", ""),
        ("y = ReduceLogSum(e)", "y", ""),
        ("b = Add(x, one) y = ReduceLogSum(b)", "by", ""),
        ("q = ReduceL2(x) m = Sqrt(q) b = Add(m, e) y = Div(z, b)", "by", "mq"),
        ("q = Pow(x, two) m = ReduceMean(q) b = Add(m, e) y = Div(z, b)", "by", "mq"),
        ("a = Abs(x) q = Mul(a, a) b = Add(q, e) y = Div(z, b)", "by", "aq"),
        ("a = Abs(x) d = Abs(z) q = Mul(a, d) b = Add(q, e) y = Div(z, b)", "by", "adq"),
        ("a = Abs(x) q = Mul(a, z) b = Add(q, e) y = Div(z, b)", "by", ""),
        ("d = Sigmoid(z) a = Abs(x) q = Mul(a, d) b = Add(q, e) y = Div(z, b)", "by", ""),
        ("q = Transpose(x) b = Add(q, e) u = Transpose(b) y = Div(z, u)", "buy", "q"),
        ("b = Add(x, one)  t = Clip(b, , big) y = Log(t)", "bty", ""),
        ("y = Add(x, e)", "y", ""),
        ("y = Mul(x, e)", "y", ""),
        ("b = Mul(x, e) y = Div(b, e)", "by", ""),
        ("y = Div(x, e)", "y", ""),
        ("y = Div(e, x)", "y", ""),
        ("b = Add(x, r5)  t = Reciprocal(b)  y = Mul(z, t)", "bty", ""),
        ("b = Add(x, r5)  t = Reciprocal(b)  y = Sigmoid(t)", "bty", ""),
        ("b = Add(x, r5)  t = Div(two, b)  y = Mul(z, t)", "bty", ""),
        ("b = Add(x, r5)  t = Div(k, b)  y = Mul(z, t)", "", ""),
        ("b = Add(x, r5)  t = Reciprocal(b)  u = Mul(t, k) y = Mul(z, u)", "", ""),
        ("b = Add(x, none)  y = Log(b)", "", ""),
        (f"s = Shape(x)  c = {FILL.format(1e-9)}  b = Add(x, c)  y = Exp(b)", "bc", ""),
        (f"s = Shape(x)  c = {FILL.format(1e-5)}  b = Add(x, c)  y = Exp(b)", "", ""),
        (f"s = Shape(x)  c = {FILL.format(1e-5)}  b = Add(x, c)  y = Reciprocal(b)", "", ""),
    ):  # fmt: skip
        expected = {**dict.fromkeys(needed, EPSILON), **dict.fromkeys(statistics, STATISTIC)}
        assert found(nodes) == expected, nodes


def test_the_reason_says_what_becomes_of_the_constant() -> None:
    for nodes, reasons in (
        ("b = Add(x, e)  y = Log(b)",
         {"b": "1e-09 is 0 in float16", "y": "it needs 1e-09, which is 0 in float16"}),
        ("m = Abs(x)  b = Add(m, e)  y = Log(b)",
         {"b": "1e-09 is 0 in float16", "y": "it needs 1e-09, which is 0 in float16",
          "m": "1e-09 is added to it"}),
        ("y = Add(x, tiny)", {"y": "8.5e-08 is 5.96e-08 in float16"}),
        ("b = Add(x, r5)  t = Reciprocal(b)  y = Mul(z, t)",
         {"b": "1e-05 has an inverse beyond float16",
          "t": "it needs 1e-05, which has an inverse beyond float16",
          "y": "it needs 1e-05, which has an inverse beyond float16"}),
    ):  # fmt: skip
        roles = epsilon_roles(parsed(f"{HEAD}{{ {nodes} }}"), HALF, lambda node: False)
        assert {node.output.name: role.why for node, role in roles.items()} == reasons, nodes


def test_of_a_constant_of_many_elements_a_lost_one_is_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for most, expected in ((4, {"b": EPSILON, "y": EPSILON}), (3, {})):
        monkeypatch.setattr(epsilons, "_MOST_ELEMENTS", most)
        assert found("b = Add(x, one)  y = Log(b)") == expected


def test_a_variance_that_is_not_constant_may_be_0() -> None:
    text = """(float[1,2,3] x, float[2] v) => (float[1,2,3] y) <float[2] s = {1,1}> {
        y = BatchNormalization<epsilon = 1e-9>(x, s, s, s, v) }"""
    assert roles_in(text, epsilon_roles) == {"y": EPSILON}
    assert roles_in(text.replace("1e-9", "1e-5"), epsilon_roles) == {}
