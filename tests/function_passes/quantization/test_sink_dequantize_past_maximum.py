import pytest

from tests import q_dq
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_dequantize_past_maximum"
POOL = "MaxPool<kernel_shape=[2,2], pads=[1,1,0,0]>"


def graph(nodes: str, x: str = "uint8[1,3,4,4] x", out: str = "float[1,3,4,4] y") -> str:
    return q_dq.graph(nodes, out, x)


@pytest.mark.parametrize("x", ["uint8[1,3,4,4] x", "int8[1,3,4,4] x"])
@pytest.mark.parametrize("opset", [12, 17, 21])
def test_a_pool_of_integers(x: str, opset: int) -> None:
    assert_rewrites(
        PASS,
        graph(f"d = DequantizeLinear(x, s, g) y = {POOL}(d)", f"{x}, {x.partition('[')[0]} g"),
        graph(f"m = {POOL}(x) y = DequantizeLinear(m, s, g)", f"{x}, {x.partition('[')[0]} g"),
        opset=opset,
    )


def test_scales_of_channels_pass_a_pool() -> None:
    assert_rewrites(
        PASS,
        graph(f"d = DequantizeLinear<axis=1>(x, t, u) y = {POOL}(d)"),
        graph(f"m = {POOL}(x) y = DequantizeLinear<axis=1>(m, t, u)"),
    )


@pytest.mark.parametrize("opset", [12, 17, 21])
def test_relu_is_the_maximum_with_the_zero_point(opset: int) -> None:
    assert_rewrites(
        PASS,
        graph("d = DequantizeLinear(x, s, z) y = Relu(d)"),
        graph("m = Max(x, z) y = DequantizeLinear(m, s, z)"),
        opset=opset,
    )


def test_relu_of_signed_integers_without_a_zero_point() -> None:
    assert_rewrites(
        PASS,
        "(int8[2] x) => (float[2] y) <float s = {0.5}> { d = DequantizeLinear(x, s) y = Relu(d) }",
        "(int8[2] x) => (float[2] y) <float s = {0.5}, int8 o = {0}>"
        " { m = Max(x, o) y = DequantizeLinear(m, s) }",
    )


def test_relu_with_a_zero_point_for_each_channel() -> None:
    assert_rewrites(
        PASS,
        graph("d = DequantizeLinear<axis=1>(x, t, u) y = Relu(d)"),
        "(uint8[1,3,4,4] x) => (float[1,3,4,4] y) <float[3] t = {0.5,1,2}, uint8[3] u = {3,0,1},"
        " int64[3] dims = {-1,1,1}> { r = Reshape(u, dims) m = Max(x, r)"
        " y = DequantizeLinear<axis=1>(m, t, u) }",
    )


@pytest.mark.parametrize(
    ("nodes", "x", "because"),
    [
        (
            f"d = DequantizeLinear(x, n, z) y = {POOL}(d)", "uint8[1,3,4,4] x",
            "a scale is not a positive constant",
        ),
        (
            f"d = DequantizeLinear(x, e, z) y = {POOL}(d)", "uint8[1,3,4,4] x, float e",
            "a scale is not a positive constant",
        ),
        (
            f"d = DequantizeLinear<axis=2>(x, k) y = {POOL}(d)", "uint8[1,3,4,4] x",
            "the scales vary along a pooled axis",
        ),
        (
            "d = DequantizeLinear(x, s, w) y = Relu(d)", "uint16[1,3,4,4] x",
            "there is no kernel for these integers",
        ),
        (
            "d = DequantizeLinear(x, s, f) y = Relu(d)", "uint4[1,3,4,4] x",
            "the integers have fewer than 8 bits",
        ),
        (
            "d = DequantizeLinear(x, s, z) y = Relu(d)", "uint8[] x",
            "the rank of the integers is not known",
        ),
        (
            f"d = DequantizeLinear(x, s, z) y, j = {POOL}(d)", "uint8[1,3,4,4] x",
            "dequantised equals change the indices of MaxPool",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, x: str, because: str) -> None:
    out = "float[1,3,4,4] y" + (", int64[1,3,4,4] j" if "y, j" in nodes else "")
    text = graph(nodes, x, out)
    if "k)" in nodes:
        text = text.replace(") {", ") <float[4] k = {1,2,3,4}> {", 1)
        text = text.replace(")  {", ") <float[4] k = {1,2,3,4}> {", 1)
    assert_unchanged(PASS, text, because=because)
