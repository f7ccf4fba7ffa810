import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_matmul"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,3] w = {1,-2,3,-4,5,-6}", "float[3] r = {0.25,0.5,1.0}", "int8[3] v = {0,0,0}"),
    *("float s = {0.5}", "float t = {2.0}", "uint8 z = {3}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=1>(w, r, v)"
Q = "y = QuantizeLinear(m, t, z)"


def graph(nodes: str, inputs: str = "uint8[N,4,2] x") -> str:
    stock = CONSTANTS[1:] if inputs.endswith(" w") else CONSTANTS
    given = spoken_of(nodes, *stock)
    return f"({inputs}) => (uint8[N,4,3] y) {given} {{ {nodes} }}"


@pytest.mark.parametrize("opset", [13, 21])
def test_a_product_of_integers_with_a_scale_for_each_column(opset: int) -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} {W} m = MatMul(d, e) {Q}"),
        graph("y = QLinearMatMul(x, s, z, w, r, v, t, z)"),
        backend=ORT,
        opset=opset,
    )


def test_both_factors_may_be_data() -> None:
    inputs = "uint8[N,4,2] x, uint8[N,2,3] w"
    assert_rewrites(
        PASS,
        graph(f"{X} e = DequantizeLinear(w, s, z) m = MatMul(d, e) {Q}", inputs),
        graph("y = QLinearMatMul(x, s, z, w, s, z, t, z)", inputs),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("axis=1>", "axis=0>", "the weight has scales along another axis"),
        (
            "d = DequantizeLinear(x, s, z)",
            "d = Cast<to=1>(x)",
            "an operand has no DequantizeLinear",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(old: str, new: str, because: str) -> None:
    text = graph(f"{X} {W} m = MatMul(d, e) {Q}")
    assert old in text
    assert_unchanged(PASS, text.replace(old, new), backend=ORT, because=because)


def test_a_vector_stays() -> None:
    text = (
        "(uint8[4,2] x, uint8[2] w) => (uint8[4] y) <float s = {0.5}, uint8 z = {3}>"
        " { d = DequantizeLinear(x, s, z) e = DequantizeLinear(w, s, z) m = MatMul(d, e)"
        " y = QuantizeLinear(m, s, z) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because="the second factor may not have matrices")


def test_a_scale_for_each_column_of_several_matrices_stays() -> None:
    text = graph(f"{X} {W} m = MatMul(d, e) {Q}", "uint8[N,4,2] x, int8[N,2,3] w")
    assert_unchanged(
        PASS,
        text.replace("axis=1>", "axis=2>"),
        backend=ORT,
        because="per-column scales need a single matrix",
    )


@pytest.mark.parametrize(
    ("inputs", "constants", "because"),
    [
        ("uint8[1,40000] x, uint8[40000,1] w", "", "the sums may not fit 32 bits"),
        ("uint8[1,K] x, uint8[K,1] w", "", "the length of the sums is not known"),
        ("uint8[1,0] x, uint8[0,1] w", "", "the sums may have no terms"),
        (
            "uint8[1,70000] x",
            f", int8[70000,1] w = {{{','.join(['127'] * 70000)}}}",
            "the sums may not fit 32 bits",
        ),
    ],
)
def test_sums_that_may_need_more_than_32_bits_stay(
    inputs: str, constants: str, because: str
) -> None:
    text = (
        f"({inputs}) => (uint8[1,1] y) <float s = {{1e-4}}, float t = {{0.1}}{constants}>"
        " { d = DequantizeLinear(x, s) e = DequantizeLinear(w, s) m = MatMul(d, e)"
        " y = QuantizeLinear(m, t) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_long_sums_of_small_weights_fit_32_bits() -> None:
    given = f"float s = {{1e-4}}, uint8 z = {{0}}, int8[70000,1] w = {{{','.join(['3'] * 70000)}}}"
    assert_rewrites(
        PASS,
        f"(uint8[1,70000] x) => (uint8[1,1] y) <{given}, int8 v = {{0}}> {{"
        " d = DequantizeLinear(x, s, z) e = DequantizeLinear(w, s, v) m = MatMul(d, e)"
        " y = QuantizeLinear(m, s, z) }",
        f"(uint8[1,70000] x) => (uint8[1,1] y) <{given}, int8 v = {{0}}> {{"
        " y = QLinearMatMul(x, s, z, w, s, v, s, z) }",
        backend=ORT,
    )
