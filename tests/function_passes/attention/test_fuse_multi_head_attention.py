import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_multi_head_attention"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int64[4] heads = {0,0,2,4}", "int64[3] whole = {0,0,8}", "int64[2] rows = {-1,8}"),
    *("float c = {0.5}", "float d = {2.0}", "float[2,1,1] e = {1,2}", "int64[3] odd = {0,0,0}"),
)
Q = "q1 = Reshape(q, heads) q2 = Transpose<perm=[0,2,1,3]>(q1)"
K = "k1 = Reshape(k, heads) k2 = Transpose<perm=[0,2,3,1]>(k1)"
V = "v1 = Reshape(v, heads) v2 = Transpose<perm=[0,2,1,3]>(v1)"
SCORES = "s = MatMul(q2, k2)"
END = "o = MatMul(p, v2) t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, whole)"
INPUTS = "float[B,S,8] q, float[B,T,8] k, float[B,T,8] v"
MHA = "com.microsoft.MultiHeadAttention<num_heads=2, scale={}>"


def graph(nodes: str, inputs: str = INPUTS, dims: str = "B,S,8") -> str:
    return f"({inputs}) => (float[{dims}] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ("p = Softmax(s)", "1.0"),
        ("s2 = Mul(s, c) p = Softmax<axis=3>(s2)", "0.5"),
        ("s2 = Div(s, d) p = Softmax(s2)", "0.5"),
    ],
)
def test_heads_attend_at_once(scores: str, scale: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"{Q} {K} {V} {SCORES} {scores} {END}"),
        graph(f"y = {MHA.format(scale)}(q, k, v)"),
        opset=17,
        backend=ORT,
    )


def test_queries_may_be_scaled() -> None:
    assert_rewrites(
        PASS,
        graph(f"{Q} {K} {V} q3 = Mul(q2, c) s = MatMul(q3, k2) p = Softmax(s) {END}"),
        graph(f"y = {MHA.format('0.5')}(q, k, v)"),
        backend=ORT,
    )


def test_keys_may_be_scaled() -> None:
    assert_rewrites(
        PASS,
        graph(f"{Q} {K} {V} k3 = Mul(k2, c) s = MatMul(q2, k3) p = Softmax(s) {END}"),
        graph(f"y = {MHA.format('0.5')}(q, k, v)"),
        backend=ORT,
    )


@pytest.mark.parametrize("dims", ["B,1,S,T", "1,2,S,T", "1,1,S,T"])
def test_a_mask_is_added_to_the_scores(dims: str) -> None:
    inputs = f"{INPUTS}, float[{dims}] m"
    masked = f"{Q} {K} {V} {SCORES} s2 = Mul(s, c) s3 = Add(s2, m) p = Softmax(s3) {END}"
    assert_rewrites(
        PASS,
        graph(masked, inputs),
        graph(f"y = {MHA.format('0.5')}(q, k, v, , , m)", inputs),
        backend=ORT,
        masked=True,
    )
    assert_unchanged(
        PASS, graph(masked, inputs), backend=ORT, because="the kernel is slower with a mask"
    )


def test_keys_and_values_may_be_in_heads_already() -> None:
    inputs = "float[B,S,8] q, float[B,2,T,4] k, float[B,2,T,4] v2"
    keys = "k2 = Transpose<perm=[0,1,3,2]>(k)"
    assert_rewrites(
        PASS,
        graph(f"{Q} {keys} {SCORES} p = Softmax(s) {END}", inputs),
        graph(f"y = {MHA.format('1.0')}(q, k, v2)", inputs),
        backend=ORT,
    )


def test_another_result_shape_is_made_from_the_merged_heads() -> None:
    end = END.replace("whole", "rows")
    assert_rewrites(
        PASS,
        graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {end}", dims="R,8"),
        graph(f"a = {MHA.format('1.0')}(q, k, v) y = Reshape(a, rows)", dims="R,8"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}").replace("float", "float16"),
            "attention kernels compute in float32 only",
        ),
        (
            graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}", INPUTS.replace("S,8] q", "S,M] q")),
            "queries are not split into heads alone",
        ),
        (
            graph(
                f"{Q.replace('heads', 'h')} {K} {V} {SCORES} p = Softmax(s) {END}",
                f"{INPUTS}, int64[4] h",
            ),
            "number and size of heads are not known",
        ),
        (
            graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}", INPUTS.replace("B,T", "C,T", 1)),
            "batch or head counts may differ",
        ),
        (
            graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}", INPUTS.replace("T,8] v", "U,8] v")),
            "keys and values may be of different lengths",
        ),
        (
            graph(
                f"{Q} {K} {V} {SCORES} m2 = Add(s, m) p = Softmax(m2) {END}",
                f"{INPUTS}, float[B,1,1,T] m",
            ),
            "the mask is not [batch, heads, queries, keys]",
        ),
        (
            graph(f"{Q} {K} {V} {SCORES} s2 = Mul(s, e) p = Softmax(s2) {END}"),
            "the scale is not one positive number",
        ),
        (
            graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}".replace("whole", "odd")).replace(
                "S,8] y", "S,2] y"
            ),
            "the final Reshape depends on the sizes of heads",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because, masked=True)


def test_weights_that_others_read_stay() -> None:
    text = graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}").replace(
        "(float[B,S,8] y)", "(float[B,S,8] y, float[B,2,S,T] p)"
    )
    assert_unchanged(PASS, text, backend=ORT)


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph(f"{Q} {K} {V} {SCORES} p = Softmax(s) {END}"))


def test_keys_that_are_turned_round_altogether_are_those_of_no_split() -> None:
    inputs = "float[4,S,8] q, float[4,4,8] k, float[4,4,8] v"
    keys = "k1 = Reshape(k, heads) k2 = Transpose(k1)"
    assert_rewrites(
        PASS,
        graph(f"{Q} {keys} {V} {SCORES} p = Softmax(s) {END}", inputs, "4,S,8"),
        graph(
            f"k1 = Reshape(k, heads) k2 = Transpose<perm=[3,2,0,1]>(k1) {V}"
            f" y = {MHA.format('1.0')}(q, k2, v2)",
            inputs,
            "4,S,8",
        ),
        backend=ORT,
    )


def test_keys_transposed_by_a_function_parameter_get_another_transpose() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1, "d" : 1]>'
    shapes = "float[2,S,8] q, float[2,2,T,4] k, float[2,2,4,T] kt, float[2,2,T,4] v"
    given = "q = Identity(a) k = Identity(b) v = Identity(c) kt = Transpose<perm: ints = @perm>(k)"

    def model(nodes: str) -> str:
        return f"""{header}
        g (float[2,S,8] a, float[2,2,T,4] b, float[2,2,T,4] c) => (float[2,S,8] y) {{
          y = d.f<perm=[0,1,3,2]>(a, b, c) }}
        <domain: "d", opset_import: ["" : 21, "com.microsoft" : 1]>
        f <perm> (a, b, c) => (y) <{shapes}> {{ {given} {nodes} }}"""

    assert_rewrites(
        PASS,
        model(
            "h = Constant<value = int64[4] {0,0,2,4}>() w = Constant<value = int64[3] {0,0,8}>()"
            " q1 = Reshape(q, h) q2 = Transpose<perm=[0,2,1,3]>(q1) s = MatMul(q2, kt)"
            " p = Softmax(s) o = MatMul(p, v) t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, w)"
        ),
        model(f"k2 = Transpose<perm=[0,1,3,2]>(kt) y = {MHA.format('1.0')}(q, k2, v)"),
        backend=ORT,
    )
