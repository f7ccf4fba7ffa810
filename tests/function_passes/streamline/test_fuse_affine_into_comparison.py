import numpy as np
import pytest

from tests.constants import spoken_of
from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_affine_into_comparison"
CONSTANTS = (
    *(
        "float c = {2}",
        "float n = {-2}",
        "float k = {3}",
        "float z = {0}",
        "float[2] both = {1,-1}",
    ),
    *("float half = {1.5}", "float minus = {-1.5}", "float top = {inf}", "float[2] two = {2,4}"),
)


def graph(nodes: str, x: str = "float[2] x") -> str:
    return f"({x}) => (bool[2] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
def test_a_factor_goes_into_the_bound(kind: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = Mul(x, c) y = {kind}(s, k)"),
        graph(f"y = {kind}(x, half)"),
    )


@pytest.mark.parametrize(
    ("kind", "mirrored"), [("Greater", "Less"), ("LessOrEqual", "GreaterOrEqual")]
)
def test_a_bound_on_the_left_and_a_negative_factor_reverse(kind: str, mirrored: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = Mul(x, c) y = {kind}(k, s)"),
        graph(f"y = {mirrored}(x, half)"),
    )
    assert_rewrites(
        PASS,
        graph(f"s = Mul(x, n) y = {kind}(s, k)"),
        graph(f"y = {mirrored}(x, minus)"),
    )


@pytest.mark.parametrize("step", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_all_numbers_beside_the_bound(step: str, kind: str, dtype: str) -> None:
    numpy = np.dtype(np.float32 if dtype == "float" else np.float64)
    random = np.random.default_rng(0)
    for _ in range(20):
        c, k = random.normal(size=2).astype(numpy)
        text = (
            f"({dtype}[N] x) => (bool[N] y) <{dtype} c = {{{c!s}}}, {dtype} k = {{{k!s}}}>"
            f" {{ s = {step}(x, c) y = {kind}(s, k) }}"
        )
        model = Model.from_proto(parse(text))
        get_pass(PASS).apply(model)
        made = model.to_proto()
        assert [node.op_type for node in made.graph.node][-1].startswith(("Greater", "Less"))
        assert len(made.graph.node) == 1
        inverse = {"Add": k - c, "Sub": k + c, "Mul": k / c, "Div": k * c}[step]
        near = [np.asarray(inverse, numpy)]
        for _ in range(6):
            near = [np.nextafter(near[0], numpy.type(-np.inf)), *near]
            near.append(np.nextafter(near[-1], numpy.type(np.inf)))
        x = np.array([*near, 0.0, -0.0, np.nan, np.inf, -np.inf, *random.normal(size=50)], numpy)
        assert (run(parse(text), {"x": x})["y"] == run(made, {"x": x})["y"]).all()


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("s = Mul(x, z) y = Less(s, k)", "the step does not keep the order of numbers"),
        ("s = Add(x, top) y = Less(s, k)", "the step does not keep the order of numbers"),
        ("s = Mul(x, both) y = Less(s, k)", "factors have both signs"),
        ("s = Add(x, c) y = Greater(s, top)", "no number reaches the bound, or all do"),
    ],
)
def test_what_stays(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes), because=because)


def test_a_constant_that_enlarges_x() -> None:
    assert_unchanged(
        PASS,
        graph("s = Mul(x, two) y = Less(s, k)", "float[1] x"),
        because="the constant may change the shape of x",
    )


def test_half_precision_may_be_computed_in_another() -> None:
    assert_unchanged(
        PASS,
        "(float16[2] x) => (bool[2] y) <float16 c = {2}, float16 k = {3}>"
        " { s = Mul(x, c) y = Less(s, k) }",
        because="x is neither float32 nor float64",
    )
