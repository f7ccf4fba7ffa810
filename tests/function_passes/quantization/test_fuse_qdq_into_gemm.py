import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qdq_into_gemm"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[3,2] w = {1,-2,3,-4,5,-6}", "float[3] r = {0.25,0.5,1.0}", "int8[3] v = {0,0,0}"),
    *("float s = {0.5}", "float t = {2.0}", "uint8 z = {3}"),
    *("int32[3] b = {8,4,-2}", "float[3] p = {0.125,0.25,0.5}", "int32[3] n = {0,0,0}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=0>(w, r, v)"
B = "f = DequantizeLinear<axis=0>(b, p, n)"
GEMM = "m = Gemm<transB=1>(d, e, f)"
Q = "y = QuantizeLinear(m, t, z)"


def graph(nodes: str, *others: str, y: str = "uint8[N,3]") -> str:
    return f"(uint8[N,2] x) => ({y} y) {spoken_of(nodes, *CONSTANTS, *others)} {{ {nodes} }}"


def test_a_gemm_of_integers_with_a_scale_for_each_column() -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} {W} {B} {GEMM} {Q}"),
        graph("y = com.microsoft.QGemm<transA=0, transB=1>(x, s, z, w, r, v, b, t, z)"),
        backend=ORT,
    )


def test_no_bias_and_one_scale() -> None:
    one = ("float r = {0.25}", "int8 v = {0}", "int8[2,3] w = {1,-2,3,-4,5,-6}")
    assert_rewrites(
        PASS,
        graph(f"{X} e = DequantizeLinear(w, r, v) m = Gemm(d, e) {Q}", *one),
        graph("y = com.microsoft.QGemm<transA=0, transB=0>(x, s, z, w, r, v, , t, z)", *one),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("<transB=1>", "<transB=1, alpha=0.5>", "the product or the addend is scaled"),
        ("DequantizeLinear(x, s, z)", "Cast<to=1>(x)", "an operand has no DequantizeLinear"),
        ("int32[3] n = {0,0,0}", "int32[3] n = {0,0,1}", "the bias has a zero point"),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(old: str, new: str, because: str) -> None:
    text = graph(f"{X} {W} {B} {GEMM} {Q}")
    assert old in text
    assert_unchanged(PASS, text.replace(old, new), backend=ORT, because=because)


def test_a_bias_that_is_computed_stays() -> None:
    text = graph(f"{X} {W} {GEMM} {Q}").replace("x) =>", "x, float[3] f) =>")
    assert_unchanged(PASS, text, backend=ORT, because="the bias is not constant")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} {W} {B} {GEMM} {Q}"))


@pytest.mark.parametrize(
    ("trans", "length", "dims", "because"),
    [
        (0, 40000, "40000,1", "the sums may not fit 32 bits"),
        (1, 40000, "1,40000", "the sums may not fit 32 bits"),
        (1, 0, "1,0", "the sums may have no terms"),
    ],
)
def test_sums_of_too_many_or_no_terms_stay(
    trans: int, length: int, dims: str, because: str
) -> None:
    text = (
        f"(uint8[1,{length}] x, uint8[{dims}] w) => (uint8[1,1] y) <float s = {{1e-4}}> {{"
        " d = DequantizeLinear(x, s) e = DequantizeLinear(w, s)"
        f" m = Gemm<transB={trans}>(d, e) y = QuantizeLinear(m, s) }}"
    )
    assert_unchanged(PASS, text, backend=ORT, because=because)
