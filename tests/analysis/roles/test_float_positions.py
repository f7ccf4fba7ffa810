"""Positions: what computes angles, distances and comparisons of counts, or angles of an input."""

import pytest

from tests.small import parsed
from tiered.analysis.roles.float_positions import position_roles
from tiered.analysis.roles.role import Role

HEAD = """(float[N,1] x, float[N,2] v, int64[N,1] p, bool[N,1] b, double[N,1] d,
    float[] u) => (float[N,M] y)
    <float[1,2] w = {1,2}, float one = {1}, float zero = {0}, float[2,2] m = {1,2,3,4}> """


def found(nodes: str) -> set[str]:
    """Return the outputs of the nodes that are positions."""
    roles = position_roles(parsed(f"{HEAD}{{ {nodes} }}"))
    role = Role("position", "it needs more digits the longer the sequence is")
    assert {*roles.values()} <= {role}
    return {node.output.name for node in roles}


@pytest.mark.parametrize(
    "end", ["Cos(a)", "Sin(a)", "Tan(a)", "Exp(a)", "Floor(a)", "Ceil(a)", "Round(a)",
            "Mod<fmod=1>(a, one)", "Less(a, one)", "Equal(one, a)"],
)  # fmt: skip
def test_what_integers_become_is_a_position_up_to_what_needs_its_digits(end: str) -> None:
    assert found(f"f = Cast<to=1>(p)  a = Mul(f, w)  y = {end}") == {"f", "a", "y"}


@pytest.mark.parametrize("end", ["Tanh(a)", "Softmax(a)", "Identity(a)", "acme.Cos(a)"])
def test_what_needs_no_digits_has_no_position(end: str) -> None:
    assert found(f"f = Cast<to=1>(p)  a = Mul(f, w)  y = {end}") == set()


@pytest.mark.parametrize(
    "line", ["Add(f, one)", "Sub(one, f)", "Div(f, one)", "Pow(w, f)", "Reciprocal(f)", "Abs(f)",
             "Neg(f)", "Clip(f, one)", "Max(f, one)", "Log(f)", "MatMul(f, w)", "Identity(f)",
             "Transpose(f)", "Concat<axis=0>(f, f)"],
)  # fmt: skip
def test_arithmetic_on_counts_is_followed(line: str) -> None:
    assert found(f"f = Cast<to=1>(p)  a = {line}  y = Sin(a)") == {"f", "a", "y"}


@pytest.mark.parametrize("line", ["Relu(f)", "Sqrt(f)", "Tanh(f)", "Add(f, t)"])
def test_other_operators_compute_data_of_counts(line: str) -> None:
    assert found(f"f = Cast<to=1>(p)  t = Tanh(v)  a = {line}  y = Sin(a)") == set()


@pytest.mark.parametrize("source", ["Cast<to=1>(b)", "Cast<to=11>(p)", "Cast<to=1>(d)"])
def test_counts_are_floats_of_integers(source: str) -> None:
    assert found(f"f = {source}  a = Neg(f)  y = Sin(a)") == set()


@pytest.mark.parametrize("source", ["Cast<to=1>(p)", "CastLike(p, one)", "Range(zero, one, one)"])
def test_a_cast_and_a_range_make_counts(source: str) -> None:
    assert found(f"f = {source}  y = Exp(f)") == {"f", "y"}


def test_a_range_of_integers_is_exact() -> None:
    nodes = "i = Size(p)  j = Size(v)  f = Range(i, j, i)  g = Mod(f, j)  y = Cast<to=1>(g)"
    assert found(nodes) == set()


@pytest.mark.parametrize("line", ["Mul(x, w)", "Add(x, one)", "Neg(x)", "MatMul(x, w)"])
def test_angles_of_an_input_are_positions(line: str) -> None:
    assert found(f"a = {line}  y = Sin(a)") == {"a", "y"}
    assert found(f"a = {line}  y = Exp(a)") == set()


@pytest.mark.parametrize(
    "line", ["Exp(x)", "Pow(x, one)", "MatMul(v, m)", "MatMul(u, m)", "Abs(x)", "Log(x)"]
)
def test_what_else_computes_of_an_input_is_data(line: str) -> None:
    assert found(f"a = {line}  y = Sin(a)") == set()


def test_a_sine_of_an_input_itself_has_no_arithmetic_to_keep() -> None:
    assert found("y = Sin(x)") == set()


def test_a_sum_of_a_count_and_an_input_counts() -> None:
    assert found("f = Cast<to=1>(p)  a = Add(x, f)  y = Exp(a)") == {"f", "a", "y"}


def test_nodes_that_compute_for_others_are_no_positions() -> None:
    nodes = "f = Cast<to=1>(p)  a = Mul(f, w)  o = Neg(f)  t = Tanh(o)  c = Cos(a)  y = Mul(t, c)"
    assert found(nodes) == {"f", "a", "c"}


def test_what_carries_a_mask_is_no_position() -> None:
    nodes = "f = Cast<to=1>(p)  n = Sub(one, f)  a = Mul(n, low)  s = Add(x, a)  y = Exp(s)"
    model = parsed(f"{HEAD.replace(' <', ' <float low = {-1e9}, ')}{{ {nodes} }}")
    assert not {"a", "s"} & {node.output.name for node in position_roles(model)}


def test_positions_of_a_body_are_found() -> None:
    nodes = """f = Cast<to=1>(p)  c = Cast<to=9>(one)
        y = If(c) <then_branch = t () => (float[N,1] q) { q = Cos(f) },
                   else_branch = e () => (float[N,1] r) { r = Relu(x) }>"""
    assert found(nodes) == {"f", "q"}
