import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qkv_into_attention"
ORT = "onnxruntime_cpu"
Q4 = "1,0,2,-1, 0,1,1,0, 3,0,1,2"
K4 = "0,1,0,2, 1,1,0,0, 2,0,1,1"
V4 = "1,1,0,0, 0,2,1,0, 0,0,1,3"
V2 = "1,1, 0,2, 3,1"
CONSTANTS = (
    *(f"float[3,4] wq = {{{Q4}}}", f"float[3,4] wk = {{{K4}}}", f"float[3,4] wv = {{{V4}}}"),
    *(f"float[3,2] wu = {{{V2}}}", "float[2] bu = {5,6}", "float one_bias = {1}"),
    *("float[4] bq = {1,2,3,4}", "float[4] bk = {5,6,7,8}", "float[4] bv = {1,0,1,0}"),
    *("int64[4] heads = {0,0,2,2}", "int64[4] thin = {0,0,2,1}", "int64[3] whole = {0,0,-1}"),
    *("int64[3] rows = {0,0,4}", "int64[2] flat = {-1,4}", "float c = {0.5}", "float zero = {0}"),
)
PRODUCTS = "q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)"
BIASES = "q0 = Add(q, bq) k0 = Add(k, bk) v0 = Add(v, bv)"
Q = "q1 = Reshape(q0, heads) q2 = Transpose<perm=[0,2,1,3]>(q1)"
K = "k1 = Reshape(k0, heads) k2 = Transpose<perm=[0,2,3,1]>(k1)"
V = "v1 = Reshape(v0, heads) v2 = Transpose<perm=[0,2,1,3]>(v1)"
SPLIT = f"{PRODUCTS} {BIASES} {Q} {K} {V} s = MatMul(q2, k2)"
ATTEND = "s2 = Mul(s, c) p = Softmax(s2) o = MatMul(p, v2)"
END = "t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, whole)"
FUSED = "float[3,12] w, float[12] b"


def graph(nodes: str, inputs: str = "float[B,S,3] x", dims: str = "B,S,4") -> str:
    return f"({inputs}) => (float[{dims}] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def rows(text: str, columns: int) -> list[list[str]]:
    numbers = text.replace(" ", "").split(",")
    return [numbers[at : at + columns] for at in range(0, len(numbers), columns)]


def fused(operands: str = "", biases: str = "1,2,3,4,5,6,7,8,1,0,1,0", v: str = V4) -> str:
    """Return what declares the joined matrix and bias."""
    parts = [rows(Q4, 4), rows(K4, 4), rows(v, len(rows(v, 1)) // 3)]
    joined = ",".join(",".join(row) for three in zip(*parts, strict=True) for row in three)
    width = len(joined.split(",")) // 3
    return f"float[3,{width}] w = {{{joined}}}, float[{width}] b = {{{biases}}}{operands}"


def attention(
    inputs: str = "float[B,S,3] x",
    mask: str = "",
    extra: str = "",
    dims: str = "B,S,4",
    scale: str = "0.5",
    **constants: str,
) -> str:
    call = f"com.microsoft.Attention<num_heads=2, scale={scale}{extra}>(x, w, b{mask})"
    return f"({inputs}) => (float[{dims}] y) <{fused(**constants)}> {{ y = {call} }}"


@pytest.mark.parametrize(
    ("attend", "scale"),
    [
        (ATTEND, "0.5"),
        ("p = Softmax<axis=3>(s) o = MatMul(p, v2)", "1.0"),
        # As dynamo spells it out: of a query that sees nothing, zeros.
        (
            "p = Softmax(s) n = IsNaN(p) z = Where(n, zero, p) o = MatMul(z, v2)",
            "1.0",
        ),
    ],
)
def test_three_products_of_one_tensor_attend_at_once(attend: str, scale: str) -> None:
    assert_rewrites(
        PASS, graph(f"{SPLIT} {attend} {END}"), attention(scale=scale), opset=17, backend=ORT
    )


def test_queries_are_scaled_before_as_torchscript_does_it() -> None:
    split = SPLIT.replace("s = MatMul(q2, k2)", "q3 = Mul(q2, c) s = MatMul(q3, k2)")
    assert_rewrites(
        PASS, graph(f"{split} p = Softmax(s) o = MatMul(p, v2) {END}"), attention(), backend=ORT
    )


def test_queries_and_keys_are_scaled_each_by_the_root() -> None:
    split = SPLIT.replace("MatMul(q2, k2)", "MatMul(q3, k3)")
    split = split.replace("s = Mat", "q3 = Mul(q2, c) k3 = Mul(k2, c) s = Mat")
    assert_rewrites(
        PASS,
        graph(f"{split} p = Softmax(s) o = MatMul(p, v2) {END}"),
        attention(scale="0.25"),
        backend=ORT,
    )


@pytest.mark.parametrize("dims", ["B,1,S,S", "1,2,S,S", "1,1,S,S", "B,2,S,S"])
def test_a_mask_is_added_to_the_scores(dims: str) -> None:
    inputs = f"float[B,S,3] x, float[{dims}] m"
    masked = "s2 = Mul(s, c) s3 = Add(s2, m) p = Softmax(s3) o = MatMul(p, v2)"
    assert_rewrites(
        PASS,
        graph(f"{SPLIT} {masked} {END}", inputs),
        attention(inputs, ", , , m"),
        backend=ORT,
    )


def test_values_may_be_of_another_size_and_products_without_a_bias() -> None:
    split = SPLIT.replace("(x, wv)", "(x, wu)").replace("(v, bv)", "(v, bu)")
    split = split.replace("Reshape(v0, heads)", "Reshape(v0, thin)")
    split = split.replace("k0 = Add(k, bk)", "").replace("Reshape(k0", "Reshape(k")
    assert_rewrites(
        PASS,
        graph(f"{split} {ATTEND} {END}", dims="B,S,2"),
        attention(
            dims="B,S,2", extra=", qkv_hidden_sizes=[4,4,2]", v=V2, biases="1,2,3,4,0,0,0,0,5,6"
        ),
        backend=ORT,
    )


def test_another_result_shape_is_made_from_the_merged_heads() -> None:
    end = END.replace("whole", "flat")
    text = attention(operands=", int64[2] flat = {-1,4}", dims="R,4")
    assert_rewrites(
        PASS,
        graph(f"{SPLIT} {ATTEND} {end}", dims="R,4"),
        text.replace("{ y =", "{ a =").replace("x, w, b)", "x, w, b) y = Reshape(a, flat)"),
        backend=ORT,
    )


@pytest.mark.parametrize("dims", ["1,S", "B,128", "B,300"])
def test_a_wide_matrix_is_split_for_one_sequence_or_a_long_one(dims: str) -> None:
    assert_rewrites(PASS, *wide(dims), backend=ORT)


@pytest.mark.parametrize("dims", ["B,S", "B,127", "2,S"])
def test_a_wide_matrix_of_many_short_sequences_stays_whole(dims: str) -> None:
    before, after = wide(dims)
    assert_unchanged(
        PASS,
        before,
        backend=ORT,
        because="one product projects short sequences faster",
    )
    assert_rewrites(PASS, before, after, backend=ORT, wide=True)


def test_a_matrix_of_256_rows_is_not_wide() -> None:
    assert_rewrites(PASS, *wide("B,S", 256), backend=ORT, runtime="none")


def wide(dims: str, rows: int = 257) -> tuple[str, str]:
    """Return a model of matrices with many rows, and what is made of it."""
    inputs, halves = f"float[{dims},{rows}] x", ",".join(["0.5"] * (rows * 4))
    before = graph(f"{SPLIT} {ATTEND} {END}", inputs, f"{dims},4")
    for numbers in (Q4, K4, V4):
        before = before.replace(f"{{{numbers}}}", f"{{{halves}}}")
    after = attention(inputs, dims=f"{dims},4").replace(fused(), "W")
    bias = fused().partition(", float[12]")[2]
    joined = f"float[{rows},12] w = {{{halves},{halves},{halves}}}, float[12]{bias}"
    return before.replace("float[3,4]", f"float[{rows},4]"), after.replace("W", joined)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{SPLIT} {ATTEND} {END}").replace("float", "double"),
            "attention kernels compute in float32 only",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END}".replace("MatMul(x, wk)", "MatMul(z, wk)")).replace(
                "float[B,S,3] x", "float[B,S,3] x, float[B,S,3] z"
            ),
            "queries, keys and values have different sources",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END}", "float[B,S,3] x, float[3,4] wq"),
            "queries, keys and values have different sources",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END}".replace("(q, bq)", "(q, one_bias)")),
            "queries, keys and values have different sources",
        ),
        (
            graph(
                f"{SPLIT} {ATTEND} {END}".replace(K, "k2 = Transpose<perm=[0,1,3,2]>(past)"),
                "float[B,S,3] x, float[B,2,S,2] past",
            )
            .replace(" k = MatMul(x, wk)", "")
            .replace(" k0 = Add(k, bk)", ""),
            "keys and values are already split into heads",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END}")
            .replace(f"wq = {{{Q4}}}", "wq = {1,0,2}")
            .replace("float[3,4] wq", "float[3,1] wq"),
            "a bias broadcasts a single column",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END} e = Relu(k0)").replace(
                "(float[B,S,4] y)", "(float[B,S,4] y, float[B,S,4] e)"
            ),
            "queries, keys or values have other consumers",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END}").replace(
                "(float[B,S,4] y)", "(float[B,S,4] y, float[B,2,S,2] v2)"
            ),
            "queries, keys or values have other consumers",
        ),
        (
            graph(f"{SPLIT} {ATTEND} {END} e = MatMul(x, wv)").replace(
                "(float[B,S,4] y)", "(float[B,S,4] y, float[B,S,4] e)"
            ),
            "a matrix has other consumers",
        ),
        (
            graph(
                f"{SPLIT} s2 = Add(s, m) p = Softmax(s2) n = IsNaN(p) z = Where(n, zero, p)"
                f" o = MatMul(z, v2) {END}",
                "float[B,S,3] x, float[B,1,S,S] m",
            ),
            "fully masked queries yield zeros",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph(f"{SPLIT} {ATTEND} {END}"))
