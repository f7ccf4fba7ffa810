import pytest

from tests.constants import spoken_of
from tiered import optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_qdq_into_move"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("float s = {0.5}", "float other = {0.25}", "uint8 z = {3}"),
    *("int64[1] o = {1}", "int64[1] i = {0}", "int64[2] shape = {2,12}"),
)
DQ = "d = DequantizeLinear(x, s, z)"
Q = "y = QuantizeLinear(m, s, z)"


def graph(nodes: str, out: str, x: str = "uint8[1,2,3,4] x") -> str:
    return f"({x}) => ({out} y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("move", "out"),
    [
        ("Transpose<perm=[0,2,3,1]>({})", "uint8[1,3,4,2]"),
        ("Flatten<axis=2>({})", "uint8[2,12]"),
        ("Reshape({}, shape)", "uint8[2,12]"),
        ("Squeeze({}, i)", "uint8[2,3,4]"),
        ("Slice({}, i, o, o)", "uint8[1,1,3,4]"),
        ("Gather<axis=1>({}, o)", "uint8[1,1,3,4]"),
    ],
)
@pytest.mark.parametrize("opset", [12, 21])
def test_integers_are_moved(move: str, out: str, opset: int) -> None:
    if opset == 12 and move.startswith("Squeeze"):
        move = "Squeeze<axes=[0]>({})"
    assert_rewrites(
        PASS,
        graph(f"{DQ} m = {move.format('d')} {Q}", out),
        graph(f"y = {move.format('x')}", out),
        backend=ORT,
        opset=opset,
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("d = Cast<to=1>(x) m = Identity(d) " + Q, "an operand has no DequantizeLinear"),
        (f"{DQ} m = Identity(d) y = QuantizeLinear(m, other, z)", "scale or zero point changes"),
    ],
)
def test_moves_that_change_the_integers_stay(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, "uint8[1,2,3,4]"), backend=ORT, because=because)


def test_a_scale_for_each_channel_stays() -> None:
    text = (
        "(uint8[2,2] x) => (uint8[2,2] y) <float[2] s = {0.5,1}, uint8[2] z = {0,0}>"
        " { d = DequantizeLinear<axis=1>(x, s, z) m = Transpose(d)"
        " y = QuantizeLinear<axis=1>(m, s, z) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because="the scale is per index of an axis")


def test_the_largest_of_integers_are_those_of_numbers() -> None:
    pool, out = "MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>", "uint8[1,2,4,5]"
    before = graph(f"{DQ} m = {pool}(d) {Q}", out)
    assert_rewrites(PASS, before, graph(f"y = {pool}(x)", out), backend=ORT, pools=True)
    assert_unchanged(PASS, before, backend=ORT, because="the kernel for floats is faster")


@pytest.mark.parametrize(("edits", "left"), [((), 2), ((f"set {PASS}{{pools=true}}",), 0)])
def test_a_pool_between_convolutions_is_of_numbers_unless_that_is_wanted(
    edits: tuple[str, ...], left: int
) -> None:
    weight = "int8[2,2,1,1] w = {1,2,3,4}, float s = {0.5}, uint8 z = {3}"
    conv = "{0}0 = DequantizeLinear(w, s) {0}1 = Conv({1}, {0}0) {0} = QuantizeLinear({0}1, s, z)"
    text = (
        f"(uint8[1,2,6,6] x) => (uint8[1,2,3,3] y) <{weight}> {{ d = DequantizeLinear(x, s, z)"
        f" {conv.format('c', 'd')} c2 = DequantizeLinear(c, s, z)"
        " m = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c2) q = QuantizeLinear(m, s, z)"
        f" q2 = DequantizeLinear(q, s, z) {conv.format('y', 'q2')} }}"
    )
    result = optimize_model(parse(text), opt_level=3, backend=ORT, edits=edits, verify=True)
    assert result.verified
    units = ("DequantizeLinear", "QuantizeLinear")
    assert sum(node.op_type in units for node in result.model.main.nodes) == left


def test_places_of_the_largest_stay() -> None:
    text = graph(f"{DQ} m, at = MaxPool<kernel_shape=[1,1]>(d) {Q}", "uint8[1,2,3,4]")
    text = text.replace("uint8[1,2,3,4] y", "uint8[1,2,3,4] y, int64[1,2,3,4] at")
    assert_unchanged(PASS, text, backend=ORT, because="an inner value")


@pytest.mark.parametrize(
    ("opset", "move", "out", "because"),
    [
        (10, "DepthToSpace<blocksize=2>", "1,1,4,4", "onnxruntime_cpu does not take DepthToSpace"),
        (11, "DepthToSpace<blocksize=2>", "1,1,4,4", None),
        (21, "SpaceToDepth<blocksize=2>", "1,16,1,1", None),
    ],
)
def test_a_move_that_the_target_has_for_floats_only_stays(
    opset: int, move: str, out: str, because: str | None
) -> None:
    interface = f"(uint8[1,4,2,2] x) => (uint8[{out}] y)"
    before = f"{interface} {spoken_of('s z', *CONSTANTS)} {{ {DQ} m = {move}(d) {Q} }}"
    if because is None:
        assert_rewrites(PASS, before, f"{interface} {{ y = {move}(x) }}", backend=ORT, opset=opset)
    else:
        assert_unchanged(PASS, before, backend=ORT, opset=opset, because=because)
