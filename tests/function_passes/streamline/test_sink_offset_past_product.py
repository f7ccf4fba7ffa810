import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_offset_past_product"
CONSTANTS = (
    *("float c = {0.5}", "float[2,2] w = {1,2,3,4}", "float[2] columns = {2,3}"),
    *("float[2,1] rows = {2,3}", "float[2,2] big = {3e38,3e38,3e38,3e38}", "float far = {3e38}"),
    *("float[2] w1 = {1,2}", "float[2] a = {2,3}", "float[2] d = {11,16}"),
    *("float[2,2] e = {8,12,12,18}", "float[2,1] f = {8,18}", "float[1,2] d2 = {11,16}"),
)
IMAGES = (
    *("float c = {0.5}", "float[2,2,1,1] w = {1,2,3,4}", "float[2,1,1] s = {2,3}"),
    *("float[2,1,1] t = {8,18}", "float[2,1,1] u = {1.5,3.5}", "float[2] bias = {1,2}"),
    *("float[4] columns = {1,2,3,4}", "float[2,1,4] both = {1,2,3,4,5,6,7,8}"),
    *("float[4,1,1,1] d = {1,2,3,4}", "float[4,1,1] v = {2,4,9,12}"),
)


def graph(nodes: str, x: str = "float[2,2] x", out: str = "float[2,2] y") -> str:
    return f"({x}) => ({out}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def images(nodes: str, out: str = "float[3,2,4,4] y") -> str:
    return f"(float[3,2,4,4] x) => ({out}) {spoken_of(nodes, *IMAGES)} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Add", "Sub"])
def test_a_matrix_on_either_side(step: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, columns) y = MatMul(s, w)"),
        graph(f"m = MatMul(x, w) y = {step}(m, d2)"),
    )
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, rows) y = MatMul(w, s)"),
        graph(f"m = MatMul(w, x) y = {step}(m, f)"),
    )


def test_an_addend_for_each_row() -> None:
    assert_rewrites(
        PASS,
        graph("s = Add(x, rows) y = MatMul(s, w)"),
        graph("m = MatMul(x, w) y = Add(m, e)"),
    )


@pytest.mark.parametrize(("c", "t"), [("s", "t"), ("c", "u")])
@pytest.mark.parametrize("bias", ["", ", bias"])
def test_images(c: str, t: str, bias: str) -> None:
    assert_rewrites(
        PASS,
        images(f"p = Add(x, {c}) y = Conv(p, w{bias})"),
        images(f"m = Conv(x, w{bias}) y = Add(m, {t})"),
    )


def test_groups() -> None:
    out = "float[3,4,4,4] y"
    assert_rewrites(
        PASS,
        images("p = Add(x, s) y = Conv<group=2>(p, d)", out),
        images("m = Conv<group=2>(x, d) y = Add(m, v)", out),
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph("s = Add(x, columns) y = MatMul(s, w)", "float[2,N] x"),
            "the addend may change the shape of x",
        ),
        (
            graph("s = Add(x, columns) y = MatMul(s, w)", "float[2] x", "float[2] y"),
            "x is a vector, or w is not a matrix",
        ),
        (
            graph("s = Add(x, far) y = MatMul(s, big)"),
            "the addend of the result is not finite",
        ),
        (
            images("p = Add(x, s) y = Conv<pads=[1,1,0,0]>(p, w)", "float[3,2,5,5] y"),
            "the pads of the convolution are zeros",
        ),
        (
            images("p = Add(x, columns) y = Conv(p, w)"),
            "the addend varies along an axis that the kernel moves along",
        ),
        (
            images("p = Add(x, both) y = Conv(p, w)"),
            "the constant does not vary along one axis alone",
        ),
        (
            "(int32[2,2] x) => (int32[2,2] y) <int32 c = {3}, int32[2,2] w = {1,2,3,4}>"
            " { s = Add(x, c) y = MatMul(s, w) }",
            "the addend is not a float of 16, 32 or 64 bits",
        ),
    ],
)
def test_what_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
