import numpy as np
import pytest

from tests.constants import spoken_of
from tiered import PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_scale_into_matmul_integer"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,3] w = {1,-2,3,-4,5,-6}", "float[3] r = {0.25,0.5,1.0}", "int8[3] v = {0,0,0}"),
    *("float[3] b = {1,2,3}", "float one = {0.5}", "int8 none = {1}", "float c = {2.0}"),
)
PRODUCT = "m = MatMulInteger(q, w, z, v) f = Cast<to=1>(m)"
CHAIN = f"{PRODUCT} k = Mul(s, r) p = Mul(f, k) y = Add(p, b)"
DATA = "uint8[N,4,2] q, float s, uint8 z"


def graph(nodes: str, inputs: str = DATA, *constants: str, y: str = "float[N,4,3] y") -> str:
    return f"({inputs}) => ({y}) {spoken_of(nodes, *CONSTANTS, *constants)} {{ {nodes} }}"


def test_integers_are_multiplied_scaled_and_biased_at_once() -> None:
    fused = graph("y = com.microsoft.MatMulIntegerToFloat(q, w, s, r, z, v, b)")
    assert_rewrites(PASS, graph(CHAIN), fused, backend=ORT)


@pytest.mark.parametrize("scales", ["Mul(s, r)", "Mul(r, s)"])
def test_the_scales_may_be_in_any_order(scales: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{PRODUCT} k = {scales} y = Mul(k, f)"),
        graph("y = com.microsoft.MatMulIntegerToFloat(q, w, s, r, z, v)"),
        backend=ORT,
    )


def test_signed_integers_that_are_multiplied_anyway_are_so_at_once() -> None:
    data = DATA.replace("uint8", "int8")
    fused = graph("y = com.microsoft.MatMulIntegerToFloat(q, w, s, r, z, v, b)", data)
    assert_rewrites(PASS, graph(CHAIN, data), fused, backend=ORT)


def test_several_matrices_have_one_scale() -> None:
    data = f"{DATA}, int8[N,2,3] w"
    text = graph("m = MatMulInteger(q, w, z) f = Cast<to=1>(m) k = Mul(s, one) y = Mul(f, k)", data)
    text = text.replace("int8[2,3] w = {1,-2,3,-4,5,-6}, ", "")
    fused = graph("y = com.microsoft.MatMulIntegerToFloat(q, w, s, one, z)", data)
    fused = fused.replace("int8[2,3] w = {1,-2,3,-4,5,-6}, ", "")
    assert_rewrites(PASS, text, fused, backend=ORT)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_the_result_is_the_same_bit_for_bit(dtype: str) -> None:
    weight = ", ".join(str(at * 7 % 251 - 125) for at in range(48 * 16))
    scales = ", ".join(str(1 / (at + 3)) for at in range(16))
    model = parse(
        f"({dtype}[5,48] q, float s, {dtype} z) => (float[5,16] y) <int8[48,16] w = {{{weight}}}, "
        f"float[16] r = {{{scales}}}, float[16] b = {{{scales}}}> {{ m = MatMulInteger(q, w, z) "
        "f = Cast<to=1>(m) k = Mul(s, r) p = Mul(f, k) y = Add(p, b) }"
    )
    with PassContext(opt_level=3, backend=ORT):
        fused = get_pass(PASS)(model)
    assert [node.op_type for node in fused.graph.node] == ["MatMulIntegerToFloat"]
    for seed in range(4):
        feeds = make_inputs(model, seed=seed).feeds
        before, after = (Session(proto).run(feeds)["y"] for proto in (model, fused))
        assert np.asarray(before).tobytes() == np.asarray(after).tobytes()


@pytest.mark.parametrize(
    ("nodes", "inputs", "because"),
    [
        (CHAIN, "uint8[2] q, float s, uint8 z", "a factor is not known to have matrices"),
        (CHAIN, "uint8[N,4,2] q, float[3] s, uint8 z", "data has several scales or zero points"),
        (CHAIN, "uint8[N,4,2] q, float s, uint8[4] z", "data has several scales or zero points"),
        (
            f"{PRODUCT} k = Mul(s, t) y = Mul(f, k)",
            f"{DATA}, float[4,1] t",
            "a weight scale is not per column",
        ),
        (
            "p = com.microsoft.MatMulIntegerToFloat(q, w, s, r, z, v) y = Add(p, c)",
            DATA,
            "the bias is not one number per column",
        ),
        (
            f"{PRODUCT} k = Mul(s, r) y = Mul(f, k)".replace("(q, w,", "(q, empty,"),
            "uint8[N,4,K] q, float s, uint8 z, int8[K,3] empty",
            "the sums may have no terms",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(nodes: str, inputs: str, because: str) -> None:
    text = graph(nodes, inputs, y="float[A,B,C] y")
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_chain() -> None:
    assert_unchanged(PASS, graph(CHAIN))
