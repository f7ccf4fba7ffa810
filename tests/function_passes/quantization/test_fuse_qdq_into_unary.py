import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_unary"
ORT = "onnxruntime_cpu"
CONSTANTS = ("float s = {0.05}", "float t = {0.004}", "uint8 z = {120}", "uint8 u = {1}")
X = "d = DequantizeLinear(x, s, z)"
Q = "y = QuantizeLinear(m, t, u)"


def graph(nodes: str) -> str:
    return f"(uint8[N,8] x) => (uint8[N,8] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("call", "written"),
    [
        ("Sigmoid(d)", "QLinearSigmoid(x, s, z, t, u)"),
        ("LeakyRelu(d)", "QLinearLeakyRelu<alpha=0.01>(x, s, z, t, u)"),
        ("LeakyRelu<alpha=0.2>(d)", "QLinearLeakyRelu<alpha=0.2>(x, s, z, t, u)"),
    ],
)
def test_integers_are_looked_up(call: str, written: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} m = {call} {Q}"),
        graph(f"y = com.microsoft.{written}"),
        backend=ORT,
    )


def test_operands_without_a_dequantize_stay() -> None:
    text = graph(f"d = Cast<to=1>(x) m = Sigmoid(d) {Q}")
    assert_unchanged(PASS, text, backend=ORT, because="an operand has no DequantizeLinear")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} m = Sigmoid(d) {Q}"))
