import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_dequantize_past_concat"
CONSTANTS = (
    *("float s = {0.5}", "float t = {0.25}", "uint8 z = {3}", "uint8 w = {0}"),
    *("float[3] v = {0.5,1,2}", "uint8[3] u = {3,0,1}"),
)


def graph(nodes: str) -> str:
    inputs = "uint8[2,3] a, uint8[2,3] b"
    return f"({inputs}) => (float[2,6] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("opset", [13, 21])
def test_integers_are_concatenated(opset: int) -> None:
    assert_rewrites(
        PASS,
        graph(
            "c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, s, z) y = Concat<axis=1>(c, d)"
        ),
        graph("q = Concat<axis=1>(a, b) y = DequantizeLinear(q, s, z)"),
        opset=opset,
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit, inputs = "com.microsoft.DequantizeLinear", "uint16[2,3] a, uint16[2,3] b, uint16 k"
    header = f"({inputs}) => (float[2,6] y) <float s = {{0.5}}>"
    assert_rewrites(
        PASS,
        f"{header} {{ c = {unit}(a, s, k) d = {unit}(b, s, k) y = Concat<axis=1>(c, d) }}",
        f"{header} {{ q = Concat<axis=1>(a, b) y = {unit}(q, s, k) }}",
        opset=17,
    )


def test_scales_along_another_axis() -> None:
    header = "(uint8[2,3] a, uint8[2,3] b) => (float[4,3] y) <float[3] v = {0.5,1,2}>"
    unit = "DequantizeLinear<axis=1>"
    assert_rewrites(
        PASS,
        f"{header} {{ c = {unit}(a, v) d = {unit}(b, v) y = Concat<axis=0>(c, d) }}",
        f"{header} {{ q = Concat<axis=0>(a, b) y = {unit}(q, v) }}",
    )


def test_integers_of_few_bits() -> None:
    assert_unchanged(
        PASS,
        "(uint4[2] a, uint4[2] b) => (float[4] y) <float s = {0.5}>"
        " { c = DequantizeLinear(a, s) d = DequantizeLinear(b, s) y = Concat<axis=0>(c, d) }",
        because="the integers have fewer than 8 bits",
    )


@pytest.mark.parametrize(
    ("c", "d", "because"),
    [
        ("DequantizeLinear(a, s, z)", "DequantizeLinear(b, t, z)", "different scales"),
        ("DequantizeLinear(a, s, z)", "DequantizeLinear(b, s, w)", "different scales"),
        ("DequantizeLinear(a, s, z)", "Cast<to=1>(b)", "an operand has no DequantizeLinear"),
        (
            "DequantizeLinear<axis=1>(a, v, u)",
            "DequantizeLinear<axis=1>(b, v, u)",
            "the scales vary along the axis of Concat",
        ),
    ],
)
def test_what_stays(c: str, d: str, because: str) -> None:
    reasons = {"different scales": "operands have different scales or zero points"}
    text = graph(f"c = {c} d = {d} y = Concat<axis=1>(c, d)")
    assert_unchanged(PASS, text, because=reasons.get(because, because))


def test_a_dequantised_value_with_other_consumers_stays() -> None:
    text = graph(
        "c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, s, z) e = Concat<axis=1>(c, d)"
        " f = Concat<axis=1>(c, c) y = Add(e, f)"
    )
    assert_unchanged(PASS, text, because="a dequantised operand has other consumers")
