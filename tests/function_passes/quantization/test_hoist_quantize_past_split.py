import pytest

from tests import q_dq
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "hoist_quantize_past_split"


def graph(nodes: str, out: str = "uint8[1,2] y, uint8[2,2] v") -> str:
    return q_dq.graph(nodes, out, "float[3,2] x")


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_all_is_quantised_at_once(opset: int) -> None:
    split = "Split<split=[1,2]>({})" if opset == 11 else "Split({}, sizes)"
    assert_rewrites(
        PASS,
        graph(
            f"a, b = {split.format('x')} y = QuantizeLinear(a, s, z) v = QuantizeLinear(b, s, z)"
        ),
        graph(f"q = QuantizeLinear(x, s, z) y, v = {split.format('q')}"),
        opset=opset,
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit, out = "com.microsoft.QuantizeLinear", "uint16[1,2] y, uint16[2,2] v"
    assert_rewrites(
        PASS,
        graph(f"a, b = Split(x, sizes) y = {unit}(a, s, w) v = {unit}(b, s, w)", out),
        graph(f"q = {unit}(x, s, w) y, v = Split(q, sizes)", out),
        opset=17,
    )


PARTS = "a, b = Split(x, sizes)"


@pytest.mark.parametrize(
    ("nodes", "out", "because"),
    [
        (
            f"{PARTS} y = QuantizeLinear(a, s, z) v = Relu(b)",
            "uint8[1,2] y, float[2,2] v", "a part is not quantised",
        ),
        (
            f"{PARTS} y = QuantizeLinear(a, s, z) v = QuantizeLinear(b, s, z)",
            "uint8[1,2] y, uint8[2,2] v, float[1,2] a", "a part has other consumers",
        ),
        (
            f"{PARTS} y = QuantizeLinear(a, s, z) v = QuantizeLinear(b, n, z)",
            "uint8[1,2] y, uint8[2,2] v", "the parts have different scales or zero points",
        ),
        (
            f"{PARTS} y = QuantizeLinear(a, s, f) v = QuantizeLinear(b, s, f)",
            "uint4[1,2] y, uint4[2,2] v", "the integers have fewer than 8 bits",
        ),
        (
            "a = Split<num_outputs=1>(x) y = QuantizeLinear(a, s, z)",
            "uint8[3,2] y", "there is one part",
        ),
        (
            "a, b = Split<num_outputs=2>(x) y = QuantizeLinear<axis=0>(a, p, k)"
            " v = QuantizeLinear<axis=0>(b, p, k)",
            "uint8[1,2] y, uint8[2,2] v", "the scales vary along the axis of Split",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, out: str, because: str) -> None:
    text = graph(nodes, out)
    if "p, k" in nodes:
        text = text.replace("float[3,2] x", "float[4,2] x").replace("uint8[1,2]", "uint8[2,2]")
        text = text.replace(") {", ") <float[2] p = {1,2}, uint8[2] k = {0,1}> {", 1).replace(
            ")  {", ") <float[2] p = {1,2}, uint8[2] k = {0,1}> {", 1
        )
    assert_unchanged(PASS, text, because=because)


def test_a_parameter_of_a_function() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 17, "local": 1]> g (float[3,2] x) => (uint8[1,2] y,'
        " uint8[2,2] v) <float s = {0.5}, int64[2] k = {1,2}> { y, v = local.f<a = 0>(x, s, k) }"
        ' <domain: "local", opset_import: ["": 17]> f <a> (x, s, k) => (y, v)'
        " { a0, b0 = Split<axis: int = @a>(x, k) y = QuantizeLinear(a0, s) v = QuantizeLinear(b0, s) }"
    )
    assert_unchanged(PASS, text, because="an attribute is a function parameter")
