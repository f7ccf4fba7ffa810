import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_hardsigmoid"
CONSTANTS = (
    *("float t = {3}", "float z = {0}", "float s = {6}", "float i = {0.16666667}"),
    *("float a = {0.2}", "float b = {0.5}", "float o = {1}", "float[4] v = {1,2,3,4}"),
)
SPELLED_OUT = "g = Mul(x, a) h = Add(g, b) y = Clip(h, z, o)"


def graph(nodes: str, *others: str, x: str = "float[N,4]", y: str = "float[N,4]") -> str:
    return f"({x} x) => ({y} y) {spoken_of(nodes, *CONSTANTS, *others)} {{ {nodes} }}"


@pytest.mark.parametrize(
    "nodes",
    [
        "g = Add(x, t) c = Clip(g, z, s) y = Div(c, s)",
        "g = Add(t, x) c = Clip(g, z, s) y = Mul(i, c)",
    ],
)
def test_a_sixth_of_the_clip(nodes: str) -> None:
    made = graph("y = HardSigmoid<alpha=0.16666667, beta=0.5>(x)")
    assert_rewrites(PASS, graph(nodes), made)


@pytest.mark.parametrize("opset", [11, 13, 22])
@pytest.mark.parametrize("nodes", [SPELLED_OUT, SPELLED_OUT.replace("(x, a)", "(a, x)")])
def test_any_slope_and_offset(nodes: str, opset: int) -> None:
    made = graph("y = HardSigmoid<alpha=0.2, beta=0.5>(x)")
    assert_rewrites(PASS, graph(nodes), made, opset=opset)


def test_other_bounds_are_another_function() -> None:
    assert_unchanged(PASS, graph(SPELLED_OUT, "float o = {2}"))
    assert_unchanged(PASS, graph("g = Add(x, t) c = Clip(g, z, s) y = Div(c, t)"))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(SPELLED_OUT, "float[1,1,1] b = {0.5}", y="float[1,N,4]"),
            "a constant may give x more dims",
        ),
        (
            graph(SPELLED_OUT, x="double[N,4]", y="double[N,4]").replace("float ", "double "),
            "HardSigmoid has no kernel for the dtype",
        ),
        (
            graph(SPELLED_OUT.replace("(x, a)", "(x, v)")),
            "a factor or addend is not a scalar",
        ),
        (
            graph(SPELLED_OUT).replace("(float[N,4] y)", "(float[N,4] y, float[N,4] g)"),
            "an inner value is a graph output",
        ),
    ],
)
def test_forms_without_an_equivalent_operator_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
