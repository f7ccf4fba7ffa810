import pytest

from tests import q_dq
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_dequantize_past_split"


def graph(nodes: str, out: str = "float[1,2] y, float[2,2] v", x: str = "uint8[3,2] x") -> str:
    return q_dq.graph(nodes, out, x)


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_each_part_is_dequantised(opset: int) -> None:
    before, after = "Split<split=[1,2]>({})", "Split<split=[1,2]>({})"
    if opset > 11:
        before = after = "Split({}, sizes)"
    assert_rewrites(
        PASS,
        graph(f"d = DequantizeLinear(x, s, z) y, v = {before.format('d')}"),
        graph(
            f"a, b = {after.format('x')} y = DequantizeLinear(a, s, z)"
            " v = DequantizeLinear(b, s, z)"
        ),
        opset=opset,
    )


def test_scales_along_another_axis() -> None:
    assert_rewrites(
        PASS,
        graph(
            "d = DequantizeLinear<axis=-2>(x, t, u) y, v = Split<axis=1, num_outputs=2>(d)",
            "float[3,1] y, float[3,1] v",
        ),
        graph(
            "a, b = Split<axis=1, num_outputs=2>(x) y = DequantizeLinear<axis=-2>(a, t, u)"
            " v = DequantizeLinear<axis=-2>(b, t, u)",
            "float[3,1] y, float[3,1] v",
        ),
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit = "com.microsoft.DequantizeLinear"
    assert_rewrites(
        PASS,
        graph(f"d = {unit}(x, s, w) y, v = Split(d, sizes)", x="uint16[3,2] x"),
        graph(f"a, b = Split(x, sizes) y = {unit}(a, s, w) v = {unit}(b, s, w)", x="uint16[3,2] x"),
        opset=17,
    )


@pytest.mark.parametrize(
    ("nodes", "out", "x", "because"),
    [
        (
            "d = DequantizeLinear<axis=0>(x, t, u) y, v = Split(d, sizes)",
            "float[1,2] y, float[2,2] v", "uint8[3,2] x",
            "the scales vary along the axis of Split",
        ),
        (
            "d = DequantizeLinear(x, s, z) y = Split<num_outputs=1>(d)",
            "float[3,2] y", "uint8[3,2] x", "Split has one part",
        ),
        (
            "d = DequantizeLinear(x, s, z) y, a = Split(d, sizes) v = Relu(d)",
            "float[1,2] y, float[3,2] v", "uint8[3,2] x",
            "the dequantised operand has other consumers",
        ),
        (
            "d = DequantizeLinear(x, s, f) y, v = Split(d, sizes)",
            "float[1,2] y, float[2,2] v", "uint4[3,2] x",
            "the integers have fewer than 8 bits",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, out: str, x: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, out, x), because=because)


def test_a_parameter_of_a_function() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 17, "local": 1]> g (uint8[3,2] x) => (float[1,2] y,'
        " float[2,2] v) <float s = {0.5}, int64[2] k = {1,2}> { y, v = local.f<a = 0>(x, s, k) }"
        ' <domain: "local", opset_import: ["": 17]> f <a> (x, s, k) => (y, v)'
        " { d = DequantizeLinear(x, s) y, v = Split<axis: int = @a>(d, k) }"
    )
    assert_unchanged(
        PASS, text, because="an attribute is a function parameter, or the operator not known"
    )
