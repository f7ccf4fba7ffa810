import pytest

from tests import q_dq
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_dequantize"


def graph(nodes: str, out: str, x: str = "uint8[1,2,3,4] x") -> str:
    return q_dq.graph(nodes, f"float[{out}] y", x)


@pytest.mark.parametrize(("move", "out"), q_dq.MOVES)
@pytest.mark.parametrize("opset", [12, 17, 21])
@pytest.mark.parametrize("zero", [", z", ""])
def test_integers_are_moved(move: str, out: str, opset: int, zero: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"d = DequantizeLinear(x, s{zero}) y = {q_dq.moving(move, 'd', opset)}", out),
        graph(f"m = {q_dq.moving(move, 'x', opset)} y = DequantizeLinear(m, s{zero})", out),
        opset=opset,
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    x = "uint16[1,2,3,4] x"
    assert_rewrites(
        PASS,
        graph("d = com.microsoft.DequantizeLinear(x, s, w) y = Transpose(d)", "4,3,2,1", x),
        graph("m = Transpose(x) y = com.microsoft.DequantizeLinear(m, s, w)", "4,3,2,1", x),
        opset=17,
    )


def test_a_scale_for_each_index_follows_its_axis() -> None:
    assert_rewrites(
        PASS,
        graph("d = DequantizeLinear<axis=-2>(x, t, u) y = Transpose<perm=[0,2,3,1]>(d)", "1,3,4,2"),
        graph("m = Transpose<perm=[0,2,3,1]>(x) y = DequantizeLinear<axis=1>(m, t, u)", "1,3,4,2"),
    )


@pytest.mark.parametrize(
    ("nodes", "out", "x", "because"),
    [
        (
            "d = DequantizeLinear<axis=2>(x, t, u) y = Reshape(d, shape)",
            "2,12",
            "uint8[1,2,3,4] x",
            "the axis of the scales may not survive",
        ),
        (
            "d = DequantizeLinear(x, s) y = Transpose(d)",
            "2,4",
            "uint4[4,2] x",
            "the integers have fewer than 8 bits",
        ),
        (
            "d = DequantizeLinear<axis=1, block_size=2>(x, b) y = Transpose(d)",
            "4,2",
            "uint8[2,4] x, float[2,2] b",
            "a scale is for a block of indices",
        ),
    ],
)
def test_what_stays(nodes: str, out: str, x: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, out, x), because=because, opset=21)


def test_a_dequantised_value_with_other_consumers_stays() -> None:
    nodes = "d = DequantizeLinear(x, s) t0 = Transpose(d) r = Relu(d) y = MatMul(r, t0)"
    assert_unchanged(PASS, graph(nodes, "2,2", "uint8[2,2] x"))
