import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "hoist_quantize"
CONSTANTS = (
    *("float s = {0.5}", "float[3] t = {0.5,1,2}", "uint8 z = {3}", "uint8[3] u = {3,0,1}"),
    *("int64[1] o = {1}", "int64[1] i = {0}", "int64[2] shape = {2,12}", "uint4 f = {3}"),
)


def graph(nodes: str, out: str, x: str = "float[1,2,3,4] x") -> str:
    return f"({x}) => ({out} y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("move", "out"),
    [
        ("Transpose<perm=[0,2,3,1]>({})", "1,3,4,2"),
        ("Flatten<axis=2>({})", "2,12"),
        ("Identity({})", "1,2,3,4"),
        ("Reshape({}, shape)", "2,12"),
        ("Squeeze({}, i)", "2,3,4"),
        ("Slice({}, i, o, o)", "1,1,3,4"),
        ("Gather<axis=1>({}, o)", "1,1,3,4"),
    ],
)
@pytest.mark.parametrize("opset", [12, 17, 21])
@pytest.mark.parametrize("zero", [", z", ""])
def test_integers_are_moved(move: str, out: str, opset: int, zero: str) -> None:
    if opset == 12 and move.startswith("Squeeze"):
        move = "Squeeze<axes=[0]>({})"
    assert_rewrites(
        PASS,
        graph(f"m = {move.format('x')} y = QuantizeLinear(m, s{zero})", f"uint8[{out}]"),
        graph(f"q = QuantizeLinear(x, s{zero}) y = {move.format('q')}", f"uint8[{out}]"),
        opset=opset,
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
