import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_dynamic_quantize_matmul"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,3] w = {1,-2,3,-4,5,-6}", "float[3] r = {0.25,0.5,1.0}", "int8[3] v = {0,0,0}"),
    *("float[3] b = {1,2,3}", "float one = {0.5}", "int8 none = {1}", "float c = {2.0}"),
)
PRODUCT = "q, s, z = DynamicQuantizeLinear(x) m = MatMulInteger(q, w, z, v) f = Cast<to=1>(m)"


def graph(nodes: str, inputs: str = "float[N,4,2] x") -> str:
    return f"({inputs}) => (float[N,4,3] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_a_product_is_quantised_scaled_and_biased_at_once() -> None:
    assert_rewrites(
        PASS,
        graph(f"{PRODUCT} k = Mul(s, r) p = Mul(f, k) y = Add(p, b)"),
        graph("y = com.microsoft.DynamicQuantizeMatMul(x, w, r, v, b)"),
        backend=ORT,
    )


def test_no_bias_and_one_scale() -> None:
    product = PRODUCT.replace(", v)", ", none)")
    assert_rewrites(
        PASS,
        graph(f"{product} k = Mul(s, one) y = Mul(f, k)"),
        graph("y = com.microsoft.DynamicQuantizeMatMul(x, w, one, none)"),
        backend=ORT,
    )


def test_as_many_scales_as_broadcast_against_the_columns() -> None:
    head = "float[N,4,2] x, float[K] r"
    text = graph(f"{PRODUCT} k = Mul(s, r) y = Mul(f, k)", head)
    fused = graph("y = com.microsoft.DynamicQuantizeMatMul(x, w, r, v)", head)
    known = "float[3] r = {0.25,0.5,1.0}, "
    assert_rewrites(
        PASS, text.replace(known, ""), fused.replace(known, ""), backend=ORT, runtime="none"
    )


def test_one_column_may_become_as_many_as_there_are_scales() -> None:
    text = (
        "(float[4,2] x, float[K] r) => (float[4,M] y) <int8[2,1] w = {1,-2}, int8 v = {0}>"
        f" {{ {PRODUCT} k = Mul(s, r) y = Mul(f, k) }}"
    )
    because = "scale or zero point is not per column"
    assert_unchanged(PASS, text, backend=ORT, because=because)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{PRODUCT} k = Mul(s, r) y = Mul(f, k)", "float[N,4,2] x, float[1,3] r").replace(
                "float[3] r = {0.25,0.5,1.0}, ", ""
            ),
            "scale or zero point is not per column",
        ),
        (
            graph("p = com.microsoft.DynamicQuantizeMatMul(x, w, r, v) y = Add(p, c)"),
            "the bias is not one number per column",
        ),
        (
            "(float[2] x) => (float[3] y) <int8[2,3] w = {1,-2,3,-4,5,-6}, float one = {0.5},"
            f" int8 v = {{0}}> {{ {PRODUCT} k = Mul(s, one) y = Mul(f, k) }}",
            "operands are not data times a matrix",
        ),
        (
            graph(f"{PRODUCT} k = Mul(s, r) y = Mul(f, k)", "float[N,4,0] x").replace(
                "int8[2,3] w = {1,-2,3,-4,5,-6}", "int8[0,3] w = {}"
            ),
            "the sums may have no terms",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_chain() -> None:
    assert_unchanged(PASS, graph(f"{PRODUCT} k = Mul(s, r) y = Mul(f, k)"))
