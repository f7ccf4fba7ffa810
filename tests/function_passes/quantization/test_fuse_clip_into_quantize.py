import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_clip_into_quantize"
CONSTANTS = (
    "float s = {0.5}",
    "uint8 z = {0}",
    "uint8 m = {128}",
    "float l = {0}",
    "float h = {6}",
)


def graph(nodes: str, *others: str, result: str = "uint8") -> str:
    given = spoken_of(nodes, *CONSTANTS, *others)
    return f"(float[N,4] x) => ({result}[N,4] y) {given} {{ {nodes} }}"


@pytest.mark.parametrize("call", ["s, z", "s"])
def test_the_zero_point_is_the_least_number_that_a_relu_leaves(call: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"r = Relu(x) y = QuantizeLinear(r, {call})"),
        graph(f"y = QuantizeLinear(x, {call})"),
    )


def test_a_clip_beyond_the_range_goes() -> None:
    narrow = ("float s = {0.02}", "int8 z = {-128}")
    assert_rewrites(
        PASS,
        graph("c = Clip(x, l, h) y = QuantizeLinear(c, s, z)", *narrow, result="int8"),
        graph("y = QuantizeLinear(x, s, z)", *narrow, result="int8"),
    )


def test_a_limit_on_one_side_goes() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (uint8[N,2] y) <float[2] s = {0.5, 2}, uint8[2] z = {0, 0},"
        " float l = {-1}> { c = Clip(x, l) y = QuantizeLinear<axis=1>(c, s, z) }",
        "(float[N,2] x) => (uint8[N,2] y) <float[2] s = {0.5, 2}, uint8[2] z = {0, 0}>"
        " { y = QuantizeLinear<axis=1>(x, s, z) }",
    )


@pytest.mark.parametrize(
    "nodes",
    ["r = Relu(x) y = QuantizeLinear(r, s, m)", "c = Clip(x, l, h) y = QuantizeLinear(c, s, z)"],
)
def test_integers_beyond_a_limit_need_it(nodes: str) -> None:
    assert_unchanged(PASS, graph(nodes), because="a limit is inside the integer range")


def test_a_limit_that_is_computed_stays() -> None:
    text = graph("c = Clip(x, q) y = QuantizeLinear(c, s, z)").replace("x) =>", "x, float q) =>")
    assert_unchanged(PASS, text, because="a limit is not constant")


@pytest.mark.parametrize(
    ("inputs", "constants", "because"),
    [
        ("float[N,4] x, float s", "<uint8 z = {0}>", "scale or zero point is not constant float32"),
        ("float[N,4] x, uint8 z", "<float s = {1}>", "scale or zero point is not constant float32"),
        ("float[N,4] x", "<float s = {-0.5}, uint8 z = {0}>", "a scale or zero point is not valid"),
        ("float[N,4] x", "<float s = {0.0}, uint8 z = {0}>", "a scale or zero point is not valid"),
    ],
)
def test_a_scale_that_is_not_known_to_be_positive_keeps_it(
    inputs: str, constants: str, because: str
) -> None:
    text = f"({inputs}) => (uint8[N,4] y) {constants} {{ r = Relu(x) y = QuantizeLinear(r, s, z) }}"
    assert_unchanged(PASS, text, because=because)


def test_a_result_with_other_consumers_stays() -> None:
    text = graph("r = Relu(x) y = QuantizeLinear(r, s, z)").replace(
        "(uint8[N,4] y)", "(uint8[N,4] y, float[N,4] r)"
    )
    assert_unchanged(PASS, text)


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit = "com.microsoft.QuantizeLinear"
    assert_rewrites(
        PASS,
        graph(f"r = Relu(x) y = {unit}(r, s, w)", "uint16 w = {0}", result="uint16"),
        graph(f"y = {unit}(x, s, w)", "uint16 w = {0}", result="uint16"),
        opset=17,
    )


def test_a_limit_that_is_two_numbers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (uint8[2,3] y)"
        " <float[2] a = {0,0}, float s = {0.1}, uint8 z = {0}> { t = Clip(x, a) y = QuantizeLinear(t, s, z) }",
        because="a limit is not constant",
    )
