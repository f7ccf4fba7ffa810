import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_dequantize_into_matmul"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,3] w = {1,-2,3,-4,5,-6}", "float[3] r = {0.25,0.5,1.0}", "int8[3] v = {0,0,0}"),
    *("float s = {0.5}", "uint8 z = {3}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=1>(w, r, v)"


def graph(nodes: str, inputs: str = "uint8[N,4,2] x", y: str = "float[N,4,3]") -> str:
    stock = CONSTANTS[1:] if inputs.endswith(" w") else CONSTANTS
    return f"({inputs}) => ({y} y) {spoken_of(nodes, *stock)} {{ {nodes} }}"


def test_integers_are_multiplied_and_the_product_scaled() -> None:
    assert_rewrites(
        PASS,
        graph(f"{X} {W} y = MatMul(d, e)"),
        graph("y = com.microsoft.MatMulIntegerToFloat(x, w, s, r, z, v)"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        (f"d = Cast<to=1>(x) {W} y = MatMul(d, e)", "an operand has no DequantizeLinear"),
        (f"{X} e = Cast<to=1>(w) y = MatMul(d, e)", "an operand has no DequantizeLinear"),
        (
            "d = DequantizeLinear<axis=1>(x, many, none) " + W + " y = MatMul(d, e)",
            "the scale of data is per index",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(nodes: str, because: str) -> None:
    text = graph(nodes)
    if "many" in nodes:
        text = text.replace("> {", ", float[4] many = {1,2,3,4}, uint8[4] none = {0,0,0,0}> {", 1)
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_a_vector_stays() -> None:
    text = graph(f"{X} {W} y = MatMul(d, e)", "uint8[2] x", "float[3]")
    assert_unchanged(PASS, text, backend=ORT, because="a factor is not known to have matrices")


def test_a_scale_for_each_column_of_several_matrices_stays() -> None:
    nodes = f"{X} {W.replace('axis=1', 'axis=2')} y = MatMul(d, e)"
    text = graph(nodes, "uint8[N,4,2] x, int8[N,2,3] w")
    assert_unchanged(PASS, text, backend=ORT, because="per-column scales need a single matrix")


def test_other_targets_keep_the_unit() -> None:
    assert_unchanged(PASS, graph(f"{X} {W} y = MatMul(d, e)"))


def test_sums_that_may_need_more_than_32_bits_stay() -> None:
    text = (
        "(uint8[1,40000] x, uint8[40000,1] w) => (float[1,1] y) <float s = {1e-4}> {"
        " d = DequantizeLinear(x, s) e = DequantizeLinear(w, s) y = MatMul(d, e) }"
    )
    assert_unchanged(PASS, text, backend=ORT, because="the sums may not fit 32 bits")
