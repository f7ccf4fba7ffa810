import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_scale_past_product"
CONSTANTS = (
    *("float c = {0.3}", "float[1,1] cc = {0.3}", "float[2] w1 = {1,2}", "float z = {0}"),
    *("float[2,2] w = {1,2,3,4}", "float[2] columns = {2,3}", "float[2,1] rows = {2,3}"),
    *("float[2,2] both = {1,2,3,4}", "int8[2,2] q = {1,2,3,4}", "float[2,1,1] b = {1,2}"),
)
IMAGES = (
    *("float c = {0.3}", "float[2,2,1,1] w = {1,2,3,4}", "float[4,1,1,1] d = {1,2,3,4}"),
    *("float[2,1,1] s = {2,3}", "float[4,1,1] t = {2,2,3,3}", "float[2] bias = {1,2}"),
    "float[3,1,1,1] batch = {1,2,3}",
)


def graph(nodes: str, x: str = "float[2,2] x", out: str = "float[2,2] y") -> str:
    return f"({x}) => ({out}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def images(nodes: str, channels: int = 2) -> str:
    out = f"float[3,{channels},4,4] y"
    return f"(float[3,2,4,4] x) => ({out}) {spoken_of(nodes, *IMAGES)} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Mul", "Div"])
def test_one_number_on_either_side(step: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, cc) y = MatMul(s, w)"),
        graph(f"m = MatMul(x, w) y = {step}(m, c)"),
    )
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, c) y = MatMul(w, s)"),
        graph(f"m = MatMul(w, x) y = {step}(m, c)"),
    )


def test_factors_of_an_axis_that_is_kept() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, rows) y = MatMul(s, w)"),
        graph("m = MatMul(x, w) y = Mul(m, rows)"),
    )
    assert_rewrites(
        PASS,
        graph("s = Mul(x, columns) y = MatMul(w, s)"),
        graph("m = MatMul(w, x) y = Mul(m, columns)"),
    )


def test_a_quantised_weight() -> None:
    weight = "v = DequantizeLinear(q, c)"
    assert_rewrites(
        PASS,
        graph(f"s = Mul(x, c) {weight} y = MatMul(s, v)"),
        graph(f"{weight} m = MatMul(x, v) y = Mul(m, c)"),
    )


def test_two_vectors() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, c) y = MatMul(s, w1)", "float[2] x", "float y"),
        graph("m = MatMul(x, w1) y = Mul(m, c)", "float[2] x", "float y"),
    )


def test_images() -> None:
    assert_rewrites(
        PASS,
        images("p = Mul(x, c) y = Conv(p, w)"),
        images("m = Conv(x, w) y = Mul(m, c)"),
    )
    assert_rewrites(
        PASS,
        images("p = Mul(x, batch) y = Conv(p, w)"),
        images("m = Conv(x, w) y = Mul(m, batch)"),
    )


def test_a_depthwise_convolution_keeps_its_channels() -> None:
    assert_rewrites(
        PASS,
        "(float[3,2,4,4] x) => (float[3,4,4,4] y) <float[2,1,1] f = {2,3},"
        " float[4,1,1,1] d = {1,2,3,4}> { s = Mul(x, f) y = Conv<group=2>(s, d) }",
        "(float[3,2,4,4] x) => (float[3,4,4,4] y) <float[4,1,1] t = {2,2,3,3},"
        " float[4,1,1,1] d = {1,2,3,4}> { m = Conv<group=2>(x, d) y = Mul(m, t) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (graph("s = Mul(x, z) y = MatMul(s, w)"), "a factor is 0 or not finite"),
        (
            graph("s = Mul(x, columns) y = MatMul(s, w)"),
            "the factors vary along the summed axis",
        ),
        (graph("s = Mul(x, rows) y = MatMul(w, s)"), "the factors vary along the summed axis"),
        (
            graph("s = Mul(x, both) y = MatMul(s, w)"),
            "the constant does not vary along one axis alone",
        ),
        (
            graph("s = Mul(x, c) y = MatMul(s, v)", "float[2,2] x, float[2,2] v"),
            "both operands are computed at run time",
        ),
        (
            graph("s = Mul(x, columns) y = MatMul(s, w)", "float[2] x", "float[2] y"),
            "an operand may be a vector",
        ),
        (images("m = Mul(x, c) y = Conv(m, w, bias)"), "the convolution has a bias"),
        (
            images("m = Mul(x, s) y = Conv(m, w)"),
            "the factors vary along an axis that Conv sums over",
        ),
    ],
)
def test_what_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
