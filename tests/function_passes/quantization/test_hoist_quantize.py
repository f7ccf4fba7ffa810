import pytest

from tests import q_dq
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "hoist_quantize"


def graph(nodes: str, out: str, x: str = "float[1,2,3,4] x") -> str:
    return q_dq.graph(nodes, f"{out} y", x)


@pytest.mark.parametrize(("move", "out"), q_dq.MOVES)
@pytest.mark.parametrize("opset", [12, 17, 21])
@pytest.mark.parametrize("zero", [", z", ""])
def test_integers_are_moved(move: str, out: str, opset: int, zero: str) -> None:
    assert_rewrites(
        PASS,
        graph(
            f"m = {q_dq.moving(move, 'x', opset)} y = QuantizeLinear(m, s{zero})", f"uint8[{out}]"
        ),
        graph(
            f"q = QuantizeLinear(x, s{zero}) y = {q_dq.moving(move, 'q', opset)}", f"uint8[{out}]"
        ),
        opset=opset,
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    out = "uint16[4,3,2,1]"
    assert_rewrites(
        PASS,
        graph("m = Transpose(x) y = com.microsoft.QuantizeLinear(m, s, w)", out),
        graph("q = com.microsoft.QuantizeLinear(x, s, w) y = Transpose(q)", out),
        opset=17,
    )


def test_a_scale_for_each_index_follows_its_axis() -> None:
    out = "uint8[1,3,4,2]"
    assert_rewrites(
        PASS,
        graph("m = Transpose<perm=[0,2,3,1]>(x) y = QuantizeLinear<axis=-3>(m, t, u)", out),
        graph("q = QuantizeLinear<axis=2>(x, t, u) y = Transpose<perm=[0,2,3,1]>(q)", out),
    )


@pytest.mark.parametrize(
    ("nodes", "out", "x", "because"),
    [
        (
            "m = Reshape(x, shape) y = QuantizeLinear<axis=0>(m, v)",
            "uint8[2,12]",
            "float[1,2,3,4] x, float[2] v",
            "the axis of the scales may not survive",
        ),
        (
            "m = Transpose(x) y = QuantizeLinear(m, s, f)",
            "uint4[2,4]",
            "float[4,2] x",
            "the integers have fewer than 8 bits",
        ),
        (
            "m = Transpose(x) y = QuantizeLinear<axis=1, block_size=2>(m, b)",
            "uint8[2,4]",
            "float[4,2] x, float[2,2] b",
            "a scale is for a block of indices",
        ),
    ],
)
def test_what_stays(nodes: str, out: str, x: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, out, x), because=because, opset=21)
