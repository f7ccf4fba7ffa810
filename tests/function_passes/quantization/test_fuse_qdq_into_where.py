from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_where"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("float s = {0.5}", "float r = {0.25}", "float t = {1.0}"),
    *("uint8 z = {3}", "uint8 u = {1}"),
)
A = "d = DequantizeLinear(a, s, z)"
B = "e = DequantizeLinear(b, r, u)"
REST = "w = Where(c, d, e) y = QuantizeLinear(w, t, z)"


def graph(nodes: str) -> str:
    given = spoken_of(nodes, *CONSTANTS)
    return f"(bool[N,1] c, uint8[N,3] a, uint8[N,3] b) => (uint8[N,3] y) {given} {{ {nodes} }}"


def test_integers_are_chosen_and_rescaled() -> None:
    assert_rewrites(
        PASS,
        graph(f"{A} {B} {REST}"),
        graph("y = com.microsoft.QLinearWhere(c, a, s, z, b, r, u, t, z)"),
        backend=ORT,
    )


def test_a_choice_of_numbers_stays() -> None:
    text = graph(f"{A} e = Cast<to=1>(b) {REST}")
    assert_unchanged(PASS, text, backend=ORT, because="an operand has no DequantizeLinear")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{A} {B} {REST}"))
