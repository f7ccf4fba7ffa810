import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_binary"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("float s = {0.5}", "float r = {0.25}", "float t = {2.0}"),
    *("uint8 z = {3}", "uint8 u = {1}", "uint8[3] c = {1,2,3}"),
)
A = "d = DequantizeLinear(a, s, z)"
B = "e = DequantizeLinear(b, r, u)"
Q = "y = QuantizeLinear(m, t, z)"


def graph(nodes: str, b: str = "uint8[N,4,3] b", *others: str) -> str:
    given = spoken_of(nodes, *CONSTANTS, *others)
    return f"(uint8[N,4,3] a, {b}) => (uint8[N,4,3] y) {given} {{ {nodes} }}"


@pytest.mark.parametrize("kind", ["Add", "Mul"])
@pytest.mark.parametrize("b", ["uint8[N,4,3] b", "uint8[3] b"])
def test_integers_are_added_and_multiplied(kind: str, b: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{A} {B} m = {kind}(d, e) {Q}", b),
        graph(f"y = com.microsoft.QLinear{kind}(a, s, z, b, r, u, t, z)", b),
        backend=ORT,
    )


def test_an_operand_with_other_readers_is_read_too() -> None:
    outputs = "(uint8[N,4,3] y, float[N,4,3] d)"
    assert_rewrites(
        PASS,
        graph(f"{A} {B} m = Add(d, e) {Q}").replace("(uint8[N,4,3] y)", outputs),
        graph(f"{A} y = com.microsoft.QLinearAdd(a, s, z, b, r, u, t, z)").replace(
            "(uint8[N,4,3] y)", outputs
        ),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("DequantizeLinear(b, r, u)", "Cast<to=1>(b)", "an operand has no DequantizeLinear"),
        ("float t = {2.0}", "float t = {-2.0}", "a scale is not a positive normal number"),
        (
            "float r = {0.25}, float t = {2.0}, uint8 z = {3}, uint8 u = {1}",
            "float[3] r = {1,2,3}, float t = {2.0}, uint8 z = {3}, uint8[3] u = {0,0,0}",
            "the scale of data is per index",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(old: str, new: str, because: str) -> None:
    text = graph(f"{A} {B} m = Add(d, e) {Q}")
    assert old in text
    text = text.replace(old, new)
    if "axis" in because:
        text = text.replace("DequantizeLinear(b", "DequantizeLinear<axis=2>(b")
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_integers_of_16_bits_stay() -> None:
    text = graph(f"{A} {B} m = Add(d, e) {Q}").replace("uint8", "uint16")
    assert_unchanged(PASS, text, backend=ORT, because="the integers do not have 8 bits")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{A} {B} m = Add(d, e) {Q}"))
