from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_concat"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("float s = {0.5}", "float r = {0.25}", "float t = {1.0}"),
    *("uint8 z = {3}", "uint8 u = {1}"),
)
A = "d = DequantizeLinear(a, s, z)"
B = "e = DequantizeLinear(b, r, u)"


def graph(nodes: str) -> str:
    given = spoken_of(nodes, *CONSTANTS)
    return f"(uint8[N,2] a, uint8[N,3] b) => (uint8[N,5] y) {given} {{ {nodes} }}"


def test_integers_are_rescaled_and_put_side_by_side() -> None:
    assert_rewrites(
        PASS,
        graph(f"{A} {B} c = Concat<axis=1>(d, e) y = QuantizeLinear(c, t, z)"),
        graph("y = com.microsoft.QLinearConcat<axis=1>(t, z, a, s, z, b, r, u)"),
        backend=ORT,
    )


def test_integers_with_equal_scales_are_only_concatenated() -> None:
    assert_rewrites(
        PASS,
        graph(
            f"{A} e = DequantizeLinear(b, s, z) c = Concat<axis=1>(d, e)"
            " y = QuantizeLinear(c, s, z)"
        ),
        graph("y = Concat<axis=1>(a, b)"),
        backend=ORT,
    )


def test_a_part_of_numbers_stays() -> None:
    text = graph(f"{A} e = Cast<to=1>(b) c = Concat<axis=1>(d, e) y = QuantizeLinear(c, t, z)")
    assert_unchanged(PASS, text, backend=ORT, because="an operand has no DequantizeLinear")


def test_other_targets_keep_the_unit() -> None:
    text = graph(f"{A} {B} c = Concat<axis=1>(d, e) y = QuantizeLinear(c, t, z)")
    assert_unchanged(PASS, text)
