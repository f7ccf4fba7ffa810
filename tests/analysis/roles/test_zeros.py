"""Numbers that few bits make 0 are found where a division or a logarithm needs them."""

import pytest

from tests.small import parsed
from tiered.analysis.roles.zeros import lost_numbers, zero_roles
from tiered.graph import Model, Node, Value

HEAD = """(float[2] x, float[2] z, bool[2] c) => (float[2] y) <float two = {2}, float minus = {-1},
    float one = {1}, float half = {0.5}, float zero = {0}> """


def lost(model: Model, *names: str) -> list[tuple[str, list[str]]]:
    """Return which values are lost if these are, each with the nodes on the way."""

    def number(value: Value, node: Node) -> float:
        return 1e-3 if value.name in names else 0.0

    return [
        (each.value.name, [node.output.name for node in each.way])
        for each in lost_numbers(model, number)
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("a = Neg(x)  y = Div(z, a)", [("a", ["y"])]),
        ("a = Neg(x)  y = Div(a, z)", []),
        ("a = Neg(x)  y = Log(a)", [("a", ["y"])]),
        ("a = Neg(x)  y = Reciprocal(a)", [("a", ["y"])]),
        ("a = Neg(x)  y = Pow(a, minus)", [("a", ["y"])]),
        ("a = Neg(x)  y = Pow(a, two)", []),
        ("a = Neg(x)  y = Exp(a)", []),
        # 0 stays 0 on the way
        ("a = Neg(x)  b = Sqrt(a)  y = Div(z, b)", [("a", ["y", "b"])]),
        ("a = Neg(x)  b = Mul(z, a)  y = Div(z, b)", [("a", ["y", "b"])]),
        ("a = Neg(x)  b = Div(a, z)  y = Div(z, b)", [("a", ["y", "b"])]),
        ("a = Neg(x)  b = Pow(a, two)  y = Div(z, b)", [("a", ["y", "b"])]),
        ("a = Neg(x)  b = ReduceSum(a)  y = Div(z, b)", [("a", ["y", "b"])]),
        # and these have no 0 of 0
        ("a = Neg(x)  b = Exp(a)  y = Div(z, b)", []),
        ("a = Neg(x)  b = Add(a, one)  y = Div(z, b)", []),
        ("a = Neg(x)  b = ReduceLogSum(a)  y = Div(z, b)", []),
    ],
)
def test_a_lost_number_is_found_behind_operators_that_keep_zeros(
    nodes: str, expected: list[tuple[str, list[str]]]
) -> None:
    assert lost(parsed(f"{HEAD}{{ {nodes} }}"), "a") == expected


def roles(nodes: str) -> dict[str, str]:
    model = parsed(f"{HEAD}{{ {nodes} }}")
    numbers = lost_numbers(model, lambda value, node: 1e-3 if value.name == "a" else 0.0)
    return {node.output.name: role.name for node, role in zero_roles(numbers).items()}


def test_the_way_the_maker_the_statistics_and_the_readers_of_an_inverse_stay_float() -> None:
    assert roles("q = Mul(x, x)  a = Add(q, one)  b = Sqrt(a)  y = Div(z, b)") == {
        "y": "epsilon", "b": "epsilon", "a": "epsilon", "q": "statistic",
    }  # fmt: skip
    assert roles("a = Neg(x)  r = Reciprocal(a)  t = Identity(r)  y = Mul(z, t)") == dict.fromkeys(
        ("a", "r", "t", "y"), "epsilon"
    )
    assert roles("a = Neg(x)  r = Div(one, a)  y = Mul(z, r)") == dict.fromkeys(
        ("a", "r", "y"), "epsilon"
    )
    assert roles("a = Neg(x)  r = Div(z, a)  y = Exp(r)") == dict.fromkeys(("a", "r"), "epsilon")


def test_numbers_that_no_node_computes_are_lost_too() -> None:
    """Of an input, or a constant, only the way and the readers of its inverse stay float."""
    for text, kept in (
        ("(float[2] a, float[2] z) => (float[2] y) { r = Div(z, a)  y = Exp(r) }", "r"),
        ("(float[2] z) => (float[2] y) <float a = {1}> { r = Log(a)  y = Mul(z, r) }", "r"),
        ("(float[2] z) => (float[2] y) <float a = {1}> { r = Reciprocal(a)  y = Mul(z, r) }", "ry"),
        ("(float[2] z) => (float[2] y) <float a = {1}> { r = Div(z, a)  y = Neg(r) }", "r"),
        ("(float[2] z) => (float[2] y) <float a = {1}> { r = Div(a, a)  y = Mul(z, r) }", "ry"),
    ):
        numbers = lost_numbers(parsed(text), lambda value, node: float(value.name == "a"))
        found = {node.output.name: role.name for node, role in zero_roles(numbers).items()}
        assert found == dict.fromkeys(kept, "epsilon"), text


def test_the_ways_of_a_lost_number_and_the_nodes_that_stay_float() -> None:
    for nodes, ways, kept in (
        ("a = Neg(x) y = Pow(z, a)", "", ""),
        ("a = Neg(x) y = Pow(a, z)", "", ""),
        ("a = Neg(x) b = Pow(a, minus) y = Div(z, b)", "b", "epsilon: a b y"),
        ("a = Neg(x) b = Pow(z, a) y = Div(z, b)", "", ""),
        ("a = Neg(x) b = Div(z, a) y = Div(z, b)", "b", "epsilon: a b"),
        ("a = Neg(x) b = Concat<axis=0>(z, a) y = Div(z, b)", "y<b", "epsilon: a b y"),
        ("a = Neg(x) b = Mul(a, a) y = Log(b)", "y<b", "epsilon: a b y"),
        ("a = Neg(x) b = own.Sqrt(a) y = Log(b)", "", ""),
        ("a = Neg(x) b = own.Log(a) y = Neg(b)", "", ""),
        ("a = Identity(x) y = Div(z, a)", "y", "epsilon: a y"),
        ("a = Neg(x) b = Where(c, a, z) y = Log(b)", "", ""),
        ("a = Neg(x) b = Relu(a) d = Abs(b) e = Neg(d) y = Log(e)", "y<e<d<b",
         "epsilon: a b d e y"),
        ("a = Neg(x) b = Transpose(a) y = Reciprocal(b)", "y<b", "epsilon: a b y"),
        ("a = Neg(x) b = ReduceL2(a) y = Log(b)", "y<b", "epsilon: a b y"),
        ("a = Neg(x) b = ReduceLogSumExp(a) y = Log(b)", "", ""),
        ("a = Neg(x) b = Sqrt(a) d = Mul(b, a) y = Div(z, d)", "y<d y<d<b", "epsilon: a b d y"),
        ("y = Div(z, x)", "", ""),
        ("y = Log(one)", "", ""),
        ("a = Neg(x) b = Pow(a, half) y = Log(b)", "y<b", "epsilon: a b y"),
        ("a = Neg(x) b = Pow(a, zero) y = Log(b)", "", ""),
        ("a = Neg(x) y = Reciprocal(a)", "y", "epsilon: a y"),
        ("a = Neg(x) r = Reciprocal(a) t = Transpose(r) u = Identity(t) y = Exp(u)", "r",
         "epsilon: a r t u y"),
        ("a = Neg(x) r = Pow(a, minus) y = Exp(r)", "r", "epsilon: a r y"),
        ("a = Neg(x) r = Log(a) y = Exp(r)", "r", "epsilon: a r"),
        ("a = Neg(x) r = Reciprocal(a) y = own.F(r)", "r", "epsilon: a r"),
        ("q = Mul(x, x) m = ReduceMean(q) a = Add(m, one) y = Log(a)", "y",
         "epsilon: a y statistic: m q"),
        ("a = Neg(x) r = Div(one, a) s = Div(z, r) y = Exp(s)", "r", "epsilon: a r s"),
    ):  # fmt: skip
        model = parsed(f"{HEAD}{{ {nodes} }}")
        assert " ".join("<".join(way) for _, way in lost(model, "a")) == ways, nodes
        names: dict[str, list[str]] = {}
        for output, name in roles(nodes).items():
            names.setdefault(name, []).append(output)
        found = [f"{name}: {' '.join(sorted(each))}" for name, each in sorted(names.items())]
        assert " ".join(found) == kept, nodes
