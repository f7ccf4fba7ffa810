import numpy as np
import pytest

from tests.constants import spoken_of
from tests.hidden_rows import assert_same_nan
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_group_query_attention"
ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int64[4] four = {2,1,4,8}", "int64[4] two = {2,1,2,8}", "int64[3] whole = {2,1,32}"),
    *("int64[1] a = {2}", "int64[5] twice = {1,1,2,1,1}", "int64[4] again = {2,4,-1,8}"),
    *("float c = {0.5}", "float zero = {0}", "float hidden = {-inf}", "float far = {-1000}"),
    *("float least = {-3.4e38}", "int64 three = {3}", "int64 second = {2}", "int32 one = {1}"),
    *("int64[1] batch = {2}", "int64[3] pairs = {2,-1,16}", "int64[2] rows = {-1,32}"),
    *("int64[4] turned = {2,4,8,-1}", "int64[4] heads = {2,4,1,8}", "int64[4] groups = {2,2,1,8}"),
    *("int64[4] back = {8,1,4,2}",),
    *("int64[1] last = {-1}", "int64[1] first = {1}"),
    *("int64[3] two_whole = {2,1,16}", "int64[3] odd = {0,1,0}", "float[2,1,1] scales = {1,2}"),
)
INPUTS = (
    "float[2,1,32] q, float[2,1,16] k, float[2,1,16] v,"
    " float[2,2,P,8] past_k, float[2,2,P,8] past_v"
)
OUTPUTS = "float[2,1,32] y, float[2,2,T,8] all_k, float[2,2,U,8] all_v"
Q = "q1 = Reshape(q, four) q2 = Transpose<perm=[0,2,1,3]>(q1)"
K = "k1 = Reshape(k, two) k2 = Transpose<perm=[0,2,1,3]>(k1)"
V = "v1 = Reshape(v, two) v2 = Transpose<perm=[0,2,1,3]>(v1)"
CACHES = "all_k = Concat<axis=2>(past_k, k2) all_v = Concat<axis=2>(past_v, v2)"
REPEATED = (
    "k3 = Unsqueeze(all_k, a) k4 = Expand(k3, twice) k5 = Reshape(k4, again)"
    " v3 = Unsqueeze(all_v, a) v4 = Expand(v3, twice) v5 = Reshape(v4, again)"
)
SCORES = "kt = Transpose<perm=[0,1,3,2]>(k5) s = MatMul(q2, kt) s1 = Mul(s, c)"
PLAIN = "w = Softmax(s1)"
MASKED = "s2 = Add(s1, m) w = Softmax(s2)"
SEEN = "n = IsNaN(w) w1 = Where(n, zero, w)"
END = "o = MatMul(w, v5) t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, whole)"
BEFORE = f"{Q} {K} {V} {CACHES} {REPEATED} {SCORES}"
MASK = "sees = Concat<axis=3>(sees_past, sees_new) m = Where(sees, zero, hidden)"
SEES = f"{INPUTS}, bool[2,1,1,P] sees_past, bool[2,1,1,1] sees_new"
CALL = "com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, scale=0.5>"
OF_PAST = (
    "l = Shape(past_k) l1 = Gather(l, second) l2 = Cast<to=6>(l1) earlier = Expand(l2, batch)"
    " total = Add(l2, one)"
)
OF_MASK = (
    "l = Shape(m) l1 = Gather(l, three) total = Cast<to=6>(l1) l2 = Sub(total, one)"
    " earlier = Expand(l2, batch)"
)


def graph(nodes: str, inputs: str = INPUTS, outputs: str = OUTPUTS) -> str:
    return f"({inputs}) => ({outputs}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def attention(mask: str = "", q: str = "q", k: str = "k", y: str = "y") -> str:
    operands = f"{q}, {k}, v, past_k, past_v, earlier, total{mask}"
    return f"{y}, all_k, all_v = {CALL}({operands})"


def test_a_query_attends_to_keys_shared_by_a_group() -> None:
    assert_rewrites(
        PASS, graph(f"{BEFORE} {PLAIN} {END}"), graph(f"{OF_PAST} {attention()}"), backend=ORT
    )


@pytest.mark.parametrize("dims", ["2,1,1", "1,1,1", "1,4,1"])
def test_a_mask_that_hides_by_a_number_that_is_not_far_is_added(dims: str) -> None:
    inputs, mask = SEES.replace("bool[2,1,1", f"bool[{dims}"), MASK.replace("hidden", "far")
    assert_rewrites(
        PASS,
        graph(f"{mask} {BEFORE} {MASKED} {END}", inputs),
        graph(f"{mask} {OF_MASK} {attention(', , , , m')}", inputs),
        backend=ORT,
    )


@pytest.mark.parametrize("dims", ["2,1,1", "1,1,1"])
def test_a_query_that_sees_nothing_stays_nan(dims: str) -> None:
    inputs = SEES.replace("bool[2,1,1", f"bool[{dims}").replace("P", "3")
    outputs = OUTPUTS.replace("T,8", "4,8").replace("U,8", "4,8")
    before = graph(f"{MASK} {BEFORE} {MASKED} {END}", inputs, outputs)
    nan = "l3 = ReduceMax(m, last) l4 = Sub(l3, l3) l5 = Squeeze(l4, first) y = Add(z, l5)"
    after = graph(f"{MASK} {OF_MASK} {attention(', , , , m', y='z')} {nan}", inputs, outputs)
    assert_rewrites(PASS, before, after, backend=ORT)
    sees_past = np.zeros((int(dims[0]), 1, 1, 3), bool)
    hiding = {"sees_past": sees_past, "sees_new": sees_past[..., :1].copy()}
    hiding["sees_new"][1:] = True
    assert_same_nan(PASS, before, hiding, backend=ORT)


def test_heads_that_see_nothing_by_themselves_stay() -> None:
    assert_unchanged(
        PASS,
        graph(f"{MASK} {BEFORE} {MASKED} {END}", SEES.replace("bool[2,1,1", "bool[1,4,1")),
        backend=ORT,
        because="single heads may see nothing",
    )


SEEING = f"{MASK} {BEFORE} {MASKED} {SEEN} {END.replace('(w, v5)', '(w1, v5)')}"


@pytest.mark.parametrize("dims", ["2,1,1", "1,4,1"])
def test_with_a_past_the_kernel_returns_zeros_for_fully_masked_queries(dims: str) -> None:
    sees = SEES.replace("bool[2,1,1", f"bool[{dims}")
    inputs, outputs = sees.replace("P", "3"), OUTPUTS.replace("T,8", "4,8").replace("U,8", "4,8")
    after = graph(f"{MASK} {OF_MASK} {attention(', , , , m')}", inputs, outputs)
    assert_rewrites(PASS, graph(SEEING, inputs, outputs), after, backend=ORT)
    for places in ("P", "0"):
        text = graph(SEEING, sees.replace("P", places))
        assert_unchanged(PASS, text, backend=ORT, because="fully masked queries need a past")


def test_of_halves_a_query_that_sees_nothing_would_get_nan() -> None:
    text = graph(SEEING, SEES).replace("float", "float16").replace("P,8", "3,8").replace("P]", "3]")
    for number, bits in (("{0.5}", "{14336}"), ("{-inf}", "{64512}")):
        text = text.replace(number, bits)
    assert_unchanged(PASS, text, backend=ORT, because="for float16, fully masked queries are NaN")


def test_nothing_is_nan_where_a_mask_hides_by_a_number() -> None:
    assert_rewrites(
        PASS,
        graph(SEEING.replace("hidden", "far"), SEES),
        graph(f"{MASK.replace('hidden', 'far')} {OF_MASK} {attention(', , , , m')}", SEES),
        backend=ORT,
    )


def test_each_head_may_have_keys_of_its_own() -> None:
    inputs = INPUTS.replace("2,1,32", "2,1,16")
    outputs = OUTPUTS.replace("2,1,32", "2,1,16")
    nodes = f"{Q.replace('four', 'two')} {K} {V} {CACHES} {SCORES} {PLAIN} {END}"
    for repeated, whole in (("k5", "all_k"), ("v5", "all_v"), ("whole", "two_whole")):
        nodes = nodes.replace(repeated, whole)
    after = graph(f"{OF_PAST} {attention()}".replace("num_heads=4", "num_heads=2"), inputs, outputs)
    assert_rewrites(PASS, graph(nodes, inputs, outputs), after, backend=ORT)


def test_heads_that_are_turned_are_put_side_by_side() -> None:
    turned = BEFORE.replace("q2, kt", "q3, kt").replace(Q, f"{Q} q3 = Neg(q2)")
    assert_rewrites(
        PASS,
        graph(f"{turned} {PLAIN} {END}"),
        graph(f"{Q} q3 = Neg(q2) q4 = Reshape(q3, whole) {OF_PAST} {attention(q='q4')}"),
        backend=ORT,
    )


def test_queries_that_are_turned_round_altogether_are_put_side_by_side() -> None:
    turned = "q1 = Reshape(q, back) q2 = Transpose(q1)"
    assert_rewrites(
        PASS,
        graph(f"{BEFORE.replace(Q, turned)} {PLAIN} {END}"),
        graph(f"{turned} q4 = Reshape(q2, whole) {OF_PAST} {attention(q='q4')}"),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("before", "end"),
    [
        # As TorchScript scales: queries and keys, each by the root.
        (
            BEFORE.replace(
                "s = MatMul(q2, kt) s1 = Mul(s, c)", "q3 = Mul(q2, c) s1 = MatMul(q3, kt)"
            ),
            END,
        ),
        (
            BEFORE.replace("MatMul(q2, kt) s1 = Mul(s, c)", "Mul(kt, c) s1 = MatMul(q2, s)"),
            END,
        ),
        # As Transposes stand after `convert_layout`.
        (
            BEFORE.replace("k4 = Expand(k3", "k6 = Transpose<perm=[0,1,2,4,3]>(k3) k4 = Expand(k6")
            .replace("k5 = Reshape(k4, again)", "kt = Reshape(k4, turned)")
            .replace("kt = Transpose<perm=[0,1,3,2]>(k5) ", ""),
            END,
        ),
        (
            BEFORE.replace(Q, "q2 = Reshape(q, heads)").replace(V, "v2 = Reshape(v, groups)"),
            "o = MatMul(w, v5) y = Reshape(o, whole)",
        ),
    ],
)
def test_scales_and_axes_may_be_elsewhere(before: str, end: str) -> None:
    after = graph(f"{OF_PAST} {attention()}")
    assert_rewrites(PASS, graph(f"{before} {PLAIN} {end}"), after, backend=ORT)


def test_another_result_shape_is_made_from_the_merged_heads() -> None:
    outputs = OUTPUTS.replace("float[2,1,32] y", "float[2,32] y")
    assert_rewrites(
        PASS,
        graph(f"{BEFORE} {PLAIN} {END.replace('whole', 'rows')}", outputs=outputs),
        graph(f"{OF_PAST} {attention(y='z')} y = Reshape(z, rows)", outputs=outputs),
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph(f"{BEFORE} {PLAIN} {END}".replace("four)", "some)"), f"{INPUTS}, int64[4] some"),
            "the kernel masks causally between several queries",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}")
            .replace("float[2,", "float[B,")
            .replace("{2,1,", "{0,1,")
            .replace("{2,4,", "{0,4,"),
            "the kernel fails on an empty batch",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}").replace(",8", ",4").replace(",32", ",16"),
            "8 does not divide the head size",
        ),
        (
            graph(
                f"{BEFORE} {PLAIN} {END} more = Relu(all_k)",
                outputs=f"{OUTPUTS}, float[2,2,T,8] more",
            ),
            "keys and values do not extend a cache",
        ),
        (
            graph(
                f"{BEFORE} {PLAIN} {END}".replace("(k5)", "(k6)").replace(
                    "kt =", "k6 = Relu(k5) kt ="
                )
            ),
            "keys and values do not extend a cache",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}", INPUTS.replace("P,8] past_v", "R,8] past_v")),
            "past keys and values may differ in length",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}".replace("(past_k, k2)", "(k2, past_k)")),
            "past keys and values may differ in length",
        ),
        (
            graph(
                f"{BEFORE} {PLAIN} {END}".replace(K, "").replace(V, ""),
                "float[2,1,32] q, float[2,2,2,8] k2, float[2,2,2,8] v2,"
                " float[2,2,P,8] past_k, float[2,2,P,8] past_v",
            ),
            "there is not one new key per query",
        ),
        (
            graph(f"{BEFORE} {MASKED} {END}", f"{INPUTS}, float[2,1,1,R] m"),
            "the mask is not per head",
        ),
        (
            graph(f"{MASK.replace('hidden', 'least')} {BEFORE} {MASKED} {END}", SEES),
            "a fully masked row must be -inf",
        ),
        (
            graph(f"{BEFORE} {MASKED} {END}", f"{INPUTS}, float[2,1,1,4] m".replace("P", "3")),
            "a fully masked row must be -inf",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}".replace("(s, c)", "(s, scales)")),
            "the scale is not one positive number",
        ),
        (
            graph(f"{BEFORE} {PLAIN} {END}".replace("whole", "odd")),
            "the final Reshape depends on the sizes of heads",
        ),
    ],
)
def test_operands_unsupported_by_the_kernel_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph(f"{BEFORE} {PLAIN} {END}"))


def test_keys_transposed_by_a_function_parameter_are_no_cache() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
      g (float[2,4,1,8] a, float[2,4,P,8] b, float[2,4,P,8] c) => (float[2,1,32] y) {
        y = d.f<perm=[0,1,3,2]>(a, b, c) }
      <domain: "d", opset_import: ["" : 21]>
      f <perm> (a, b, c) => (y)
        <float[2,4,1,8] q, float[2,4,P,8] k, float[2,4,8,P] kt, float[2,4,P,8] v> {
        w = Constant<value = int64[3] {2,1,32}>() q = Identity(a) k = Relu(b) v = Relu(c)
        kt = Transpose<perm: ints = @perm>(k) s = MatMul(q, kt) p = Softmax(s) o = MatMul(p, v)
        y = Reshape(o, w) }"""
    assert_unchanged(PASS, text, backend=ORT, because="keys and values do not extend a cache")
