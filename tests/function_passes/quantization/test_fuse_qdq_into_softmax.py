import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_softmax"
ORT = "onnxruntime_cpu"
CONSTANTS = ("float s = {0.05}", "float t = {0.004}", "uint8 z = {120}", "uint8 u = {1}")
X = "d = DequantizeLinear(x, s, z)"
Q = "y = QuantizeLinear(m, t, u)"


def graph(nodes: str, rows: str = "2") -> str:
    given = spoken_of(nodes, *CONSTANTS)
    return f"(uint8[{rows},8] x) => (uint8[{rows},8] y) {given} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("call", "axis"), [("Softmax<axis=1>(d)", 1), ("Softmax(d)", -1), ("Softmax<axis=0>(d)", 0)]
)
def test_exponentials_are_looked_up(call: str, axis: int) -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} m = {call} {Q}"),
        graph(f"y = com.microsoft.QLinearSoftmax<axis={axis}, opset=13>(x, s, z, t, u)"),
        backend=ORT,
    )


def test_a_tensor_that_may_be_empty_stays() -> None:
    text = graph(f"{X} m = Softmax(d) {Q}", "N")
    assert_unchanged(PASS, text, backend=ORT, because="the kernel does not support an empty tensor")


def test_a_softmax_over_several_axes_stays() -> None:
    text = graph(f"{X} m = Softmax<axis=1>(d) {Q}")
    assert_unchanged(
        PASS, text, backend=ORT, opset=11, because="before opset 13 a Softmax is over several axes"
    )


def test_operands_without_a_dequantize_stay() -> None:
    text = graph(f"d = Cast<to=1>(x) m = Softmax(d) {Q}")
    assert_unchanged(PASS, text, backend=ORT, because="an operand has no DequantizeLinear")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} m = Softmax(d) {Q}"))


def test_one_element_stays_1() -> None:
    assert_unchanged(
        PASS,
        graph(f"{X} m = Softmax<axis=0>(d) {Q}", "1"),
        backend=ORT,
        because="the kernel returns 0 for one element",
    )
