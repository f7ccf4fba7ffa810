import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_value_bias"
CONSTANTS = (
    *("float[4] b = {1,-2,3,-4}", "float[1] one = {1}", "float[1,3,1] rows = {1,2,3}"),
    *("float[4,2] w = {1,2,3,4,5,6,7,8}", "float[2] c = {1,2}", "float[2] d = {-17,-18}"),
    *(
        "float[2] sum = {17,22}",
        "float[2,4] u = {1,3,5,7,2,4,6,8}",
        "float[4] large = {3e38,3e38,0,0}",
    ),
    *("float[1,2] flat = {1,2}", "int64[4] heads = {0,0,2,2}", "int64[3] merged = {0,0,4}"),
    *("int64[2] rank2 = {-1,4}", "float[1,1,2] lines = {1,2}", "int64[4] odd = {0,0,4,1}"),
)
INPUTS, Y = "float[N,3,3] a, float[N,3,4] v", "float[N,3,2] y"
AVERAGE = "p = Softmax<axis=2>(a) "


def graph(nodes: str, inputs: str = INPUTS, y: str = Y) -> str:
    return f"({inputs}) => ({y}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("add", ["Add(v, b)", "Add(b, v)"])
@pytest.mark.parametrize(
    "end", ["Add(o, {})", "Add({}, o)"], ids=["bias on the right", "bias on the left"]
)
def test_a_bias_of_values_goes_into_that_of_the_projection(add: str, end: str) -> None:
    rest = "o = MatMul(z, w) y = "
    assert_rewrites(
        PASS,
        graph(f"{AVERAGE} vb = {add} z = MatMul(p, vb) {rest}{end.format('c')}"),
        graph(f"{AVERAGE} z = MatMul(p, v) {rest}{end.format('d')}"),
    )


def test_one_number_is_as_many_as_the_columns() -> None:
    rest = "o = MatMul(z, w) y = "
    assert_rewrites(
        PASS,
        graph(f"{AVERAGE} vb = Add(v, one) z = MatMul(p, vb) {rest} Add(o, c)"),
        graph(f"{AVERAGE} z = MatMul(p, v) {rest} Add(o, sum)"),
    )


@pytest.mark.parametrize(
    ("gemm", "weight"), [("Gemm", "w"), ("Gemm<transB=1>", "u")], ids=["plain", "transposed"]
)
def test_heads_are_merged_before_a_gemm(gemm: str, weight: str) -> None:
    inputs, y = "float[N,2,3,3] a, float[N,3,4] v", "float[M,2] y"
    split = "h = Reshape({}, heads) t = Transpose<perm=[0,2,1,3]>(h)"
    rest = (
        "p = Softmax(a) z = MatMul(p, t) e = Transpose<perm=[0,2,1,3]>(z)"
        f" f = Reshape(e, rank2) y = {gemm}(f, {weight}, {{}})"
    )
    assert_rewrites(
        PASS,
        graph(f"vb = Add(v, b) {split.format('vb')} {rest.format('c')}", inputs, y),
        graph(f"{split.format('v')} {rest.format('d')}", inputs, y),
    )


VB = f"{AVERAGE} vb = Add(v, b) z = MatMul(p, vb) "


@pytest.mark.parametrize(
    ("nodes", "inputs", "because"),
    [
        (
            f"{AVERAGE} vb = Add(v, rows) z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            INPUTS,
            "the addend is not the same for all keys",
        ),
        (
            "p = Sigmoid(a) vb = Add(v, b) z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            INPUTS,
            "no Softmax makes the weights",
        ),
        (
            "vb = Add(v, b) z = MatMul(a, vb) o = MatMul(z, w) y = Add(o, c)",
            INPUTS,
            "no Softmax makes the weights",
        ),
        (
            "p = Softmax<axis=1>(a) vb = Add(v, b) z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            INPUTS,
            "the sums of the weights are not 1",
        ),
        (
            # A query that is masked fully gets 0, not the bias.
            "s = Softmax(a) n = IsNaN(s) zero = Sub(v0, v0) p = Where(n, zero, s) vb = Add(v, b)"
            " z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            f"{INPUTS}, float[1] v0",
            "no Softmax makes the weights",
        ),
        (
            f"{VB} o = MatMul(z, w) y = Add(o, c)",
            "float[N,3,K] a, float[N,K,4] v",
            "there may be queries without a key",
        ),
        (
            f"{VB} o = MatMul(z, w) y = Add(o, c)",
            "float[N,3,0] a, float[N,0,4] v",
            "there may be queries without a key",
        ),
        (
            f"{VB} o = MatMul(z, w) y = Add(o, c)",
            "float[3,3] a, float[N,3,4] v",
            "the sums of the weights are not 1",
        ),
        (
            "p = Softmax<axis=3>(a) vb = Add(v, b) z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            "float[N,2,3,3] a, float[2,3,4] v",
            "the weights have other dims",
        ),
        (
            "p = Softmax(a) vb = Add(v, b) z = MatMul(p, vb) o = Gemm<alpha=2.0>(z, w, c) y = Identity(o)",
            "float[3,3] a, float[3,4] v",
            "no projection",
        ),
        (f"{VB} o = MatMul(z, w) y = Relu(o)", INPUTS, "no projection with a bias follows"),
        (f"{VB} o = Relu(z) y = Add(o, b)", INPUTS, "no projection with a bias follows"),
        (
            f"{VB} o = MatMul(z, x) y = Add(o, c)",
            f"{INPUTS}, float[4,2] x",
            "matrix and bias of the projection are not constants",
        ),
        (
            f"{VB} o = MatMul(z, w) y = Add(o, x)",
            f"{INPUTS}, float[2] x",
            "matrix and bias of the projection are not constants",
        ),
        (
            f"{VB} o = MatMul(z, w) y = Add(o, lines)",
            INPUTS,
            "the bias of the projection is not a vector",
        ),
        (
            f"{AVERAGE} vb = Add(v, large) z = MatMul(p, vb) o = MatMul(z, w) y = Add(o, c)",
            INPUTS,
            "the bias of the projection would not be finite",
        ),
        (
            f"{AVERAGE} vb = Add(v, b) z = MatMul(vb, p) o = MatMul(z, w) y = Add(o, c)",
            INPUTS.replace("3,3] a", "4,4] a"),
            "no product of weights and values follows",
        ),
        (
            f"{VB} t = Transpose<perm=[0,2,1]>(z) o = MatMul(t, x) y = Add(o, c)",
            f"{INPUTS}, float[3,2] x",
            "the addend is not the same for all results",
        ),
    ],
)
def test_it_declines(nodes: str, inputs: str, because: str) -> None:
    y = "float[N,4,2] y" if "Transpose" in nodes or "vb, p" in nodes else Y
    y = "float[N,3,4] y" if "Relu(z)" in nodes else y
    y = "float[N,2,3,2] y" if "axis=3" in nodes else y
    y = "float[3,2] y" if "Gemm" in nodes else y
    assert_unchanged(PASS, graph(nodes, inputs, y), because=because)


def test_values_and_results_that_others_read_stay() -> None:
    for also in ("float[N,3,4] vb", "float[N,3,4] z"):
        assert_unchanged(
            PASS,
            graph(f"{VB} o = MatMul(z, w) y = Add(o, c)", y=f"{Y}, {also}"),
            because="has other consumers",
        )
