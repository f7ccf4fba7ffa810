import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_conv"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,1,1,1] w = {3,-5}", "float[2] r = {0.25,0.5}", "int8[2] v = {0,0}"),
    *("float s = {0.5}", "float t = {2.0}", "uint8 z = {3}", "uint8 u = {1}"),
    *("int32[2] b = {10,-20}", "float[2] p = {0.125,0.25}", "int32[2] n = {0,0}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=0>(w, r, v)"
B = "f = DequantizeLinear<axis=0>(b, p, n)"
Q = "y = QuantizeLinear(c, t, u)"


def graph(nodes: str, *others: str, x: str = "uint8", y: str = "uint8") -> str:
    given = spoken_of(nodes, *CONSTANTS, *others)
    return f"({x}[N,1,4,4] x) => ({y}[N,2,4,4] y) {given} {{ {nodes} }}"


def test_a_convolution_of_integers_with_a_scale_for_each_channel() -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} {W} {B} c = Conv<pads=[0,0,0,0]>(d, e, f) {Q}"),
        graph("y = QLinearConv<pads=[0,0,0,0]>(x, s, z, w, r, v, t, u, b)"),
        backend=ORT,
    )


@pytest.mark.parametrize("opset", [10, 13, 21])
def test_no_bias_and_one_scale(opset: int) -> None:
    constants = ("float r = {0.25}", "int8 v = {0}")
    assert_rewrites(
        PASS,
        graph(f"{X} e = DequantizeLinear(w, r, v) c = Conv(d, e) {Q}", *constants),
        graph("y = QLinearConv(x, s, z, w, r, v, t, u)", *constants),
        backend=ORT,
        opset=opset,
    )


def test_a_bias_of_numbers_is_rounded_to_steps_that_the_result_does_not_show() -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} {W} c = Conv(d, e, f) {Q}", "float[2] f = {1.25,-5.0}"),
        graph("y = QLinearConv(x, s, z, w, r, v, t, u, b)"),
        backend=ORT,
    )


def test_a_bias_in_other_steps_is_converted() -> None:
    bias = ("int32[2] b = {5,-5}", "float[2] p = {0.25,1.0}")
    assert_rewrites(
        PASS,
        graph(f"{X} {W} {B} c = Conv(d, e, f) {Q}", *bias),
        graph("y = QLinearConv(x, s, z, w, r, v, t, u, b)"),
        backend=ORT,
    )


def test_absent_zero_points_are_written() -> None:
    zeros = ("float r = {0.25}", "uint8 z = {0}", "int8 v = {0}", "uint8 u = {0}")
    assert_rewrites(
        PASS,
        graph(
            "d = DequantizeLinear(x, s) e = DequantizeLinear(w, r) c = Conv(d, e)"
            " y = QuantizeLinear(c, t)",
            *zeros,
        ),
        graph("y = QLinearConv(x, s, z, w, r, v, t, u)", *zeros),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("float s = {0.5}", "float s = {0.0}", "a scale is not a positive normal number"),
        ("axis=0>(w", "axis=1>(w", "the weight has scales along another axis"),
        ("int8[2] v = {0,0}", "int8[2] v = {0,1}", "the zero points of the weight differ"),
        ("int32[2] n = {0,0}", "int32[2] n = {0,1}", "the bias has a zero point"),
        ("int32[2] b = {10,-20}", "int32[1] b = {10}", "the bias is not one number a channel"),
        ("float[2] p = {0.125,0.25}", "float[2] p = {1e9,1e9}", "the bias does not fit 32 bits"),
        (
            "float[2] p = {0.125,0.25}",
            "float[2] p = {0.01,0.01}",
            "the scale of data times weight is too coarse for the bias",
        ),
        ("DequantizeLinear(x, s, z)", "Cast<to=1>(x)", "an operand has no DequantizeLinear"),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(old: str, new: str, because: str) -> None:
    text = graph(f"{X} {W} {B} c = Conv(d, e, f) {Q}")
    assert old in text
    assert_unchanged(PASS, text.replace(old, new), backend=ORT, because=because)


def test_signed_data_needs_signed_weights_and_a_signed_result() -> None:
    nodes = f"{X} {W} c = Conv(d, e) {Q}"
    unsigned = ("int8 z = {3}", "uint8[2,1,1,1] w = {3,5}", "uint8[2] v = {0,0}")
    assert_unchanged(
        PASS,
        graph(nodes, *unsigned, x="int8"),
        backend=ORT,
        because="data and result are of different dtypes",
    )
    text = graph(nodes, *unsigned, "int8 u = {1}", x="int8", y="int8")
    assert_unchanged(
        PASS, text, backend=ORT, because="there is no kernel for signed data and unsigned weights"
    )


def test_a_scale_that_is_computed_stays() -> None:
    text = graph(f"{X} {W} c = Conv(d, e) {Q}").replace("x) =>", "x, float q) =>")
    text = text.replace("QuantizeLinear(c, t", "QuantizeLinear(c, q")
    assert_unchanged(PASS, text, backend=ORT, because="a scale or zero point is not a constant")


def test_a_result_with_other_consumers_stays() -> None:
    text = graph(f"{X} {W} c = Conv(d, e) {Q}").replace(
        "(uint8[N,2,4,4] y)", "(uint8[N,2,4,4] y, float[N,2,4,4] c)"
    )
    assert_unchanged(PASS, text, backend=ORT)


@pytest.mark.parametrize(
    ("weight", "bias", "fits"),
    [
        (127, 2147480000, False),
        (127, 2**31 - 1024 * 127 * 255, False),
        (127, 2**31 - 1024 * 127 * 255 - 1, True),
        (1, 2147000000, True),
    ],
)
def test_sums_and_bias_stay_within_32_bits(weight: int, bias: int, fits: bool) -> None:
    scales = (
        "float xs = {1e-4}, uint8 xz = {0}, float ws = {1e-4}, float ys = {0.1}, uint8 yz = {0}"
    )
    given = (
        f"<{scales}, int8[1,1024,1,1] w = {{{','.join([str(weight)] * 1024)}}},"
        f" int32[1] b = {{{bias}}}, float bs = {{1e-8}}, int8 zero = {{0}}>"
    )
    interface = "(uint8[1,1024,1,1] x) => (uint8[1,1,1,1] y)"
    before = (
        f"{interface} {given} {{ dx = DequantizeLinear(x, xs, xz) dw = DequantizeLinear(w, ws, zero)"
        " db = DequantizeLinear(b, bs) c = Conv(dx, dw, db) y = QuantizeLinear(c, ys, yz) }"
    )
    if fits:
        after = given.replace(", float bs = {1e-8}", "")
        after = f"{interface} {after} {{ y = QLinearConv(x, xs, xz, w, ws, zero, ys, yz, b) }}"
        assert_rewrites(PASS, before, after, backend=ORT)
    else:
        assert_unchanged(PASS, before, backend=ORT, because="the sums may not fit 32 bits")


def test_signed_data_is_multiplied_faster_as_floats() -> None:
    zeros = ("int8 z = {3}", "int8 u = {1}")
    text = graph(f"{X} {W} c = Conv(d, e) {Q}", *zeros, x="int8", y="int8")
    assert_unchanged(PASS, text, backend=ORT, because="QLinearConv is slower than its parts")
