import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_past_into_attention"
ORT = "onnxruntime_cpu"


def numbers(count: int, scale: float) -> str:
    return ", ".join(str((at * 37 % 23 - 11) * scale) for at in range(count))


def triangle(size: int, above: int = 0) -> str:
    return ", ".join(str(int(j <= i + above)) for i in range(size) for j in range(size))


CONSTANTS = (
    *(f"float[4,12] w = {{{numbers(48, 0.1)}}}", f"float[12] b = {{{numbers(12, 0.2)}}}"),
    f"uint8[1,1,16,16] tri = {{{triangle(16)}}}",
    f"uint8[1,1,16,16] all = {{{triangle(16, 16)}}}",
    *("int64[4] heads = {0,0,2,2}", "int64[3] whole = {0,0,-1}", "int64[3] two = {0,-1,2}"),
    *("int64[4] other = {0,0,-1,1}", "int64[3] thirds = {4,4,4}", "int64[3] uneven = {4,2,6}"),
    *("int64 zero = {0}", "int64 one = {1}", "int64 last = {-2}", "int64[1] none = {0}"),
    *("int64[1] rows = {2}", "int64[1] columns = {3}", "int64[1] front = {0}"),
    *("float c = {0.5}", "float r = {2.0}", "float negative = {-0.5}"),
    *("float hidden = {-10000.0}", "float low = {-3.4e38}", "float small = {-5.0}"),
)
PRODUCT = "m = MatMul(x, w) a = Add(m, b)"
SPLIT = "q0, k0, v0 = Split<axis=2>(a, thirds)"
HEADS = (
    "q1 = Reshape(q0, heads) q = Transpose<perm=[0,2,1,3]>(q1)"
    " k1 = Reshape(k0, heads) k2 = Transpose<perm=[0,2,1,3]>(k1)"
    " v1 = Reshape(v0, heads) v2 = Transpose<perm=[0,2,1,3]>(v1)"
)
HALVES = "pk = Gather<axis=0>(past, zero) pv = Gather<axis=0>(past, one)"
PAST = f"{HALVES} k = Concat<axis=2>(pk, k2) v = Concat<axis=2>(pv, v2)"
PRESENT = "ku = Unsqueeze(k, front) vu = Unsqueeze(v, front) present = Concat<axis=0>(ku, vu)"
MASK = (
    "qs = Shape(q) ks = Shape(k) nq = Gather(qs, last) nk = Gather(ks, last) st = Sub(nk, nq)"
    " s1 = Unsqueeze(st, front) e1 = Unsqueeze(nk, front)"
    " t1 = Slice(tri, s1, e1, rows) t2 = Slice(t1, none, e1, columns) seen = Cast<to=9>(t2)"
)
SCORES = "kt = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, kt) ss = Mul(s, c)"
END = (
    "sm = Where(seen, ss, hidden) p = Softmax<axis=3>(sm) o = MatMul(p, v)"
    " t = Transpose<perm=[0,2,1,3]>(o) y = Reshape(t, whole)"
)
NODES = f"{PRODUCT} {SPLIT} {HEADS} {PAST} {PRESENT} {MASK} {SCORES} {END}"
HEAD = "(float[B,S,4] x, float[2,B,2,P,2] past) => (float[B,S,4] y, float[2,B,2,T,2] present)"
FUSED = (
    "y, present = com.microsoft.Attention<num_heads=2, unidirectional=1, scale=0.5>"
    "(x, w, b, , past)"
)


def graph(nodes: str, head: str = HEAD) -> str:
    return f"{head} {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("Mul(s, c)", "Div(s, r)"),
        ("hidden)", "low)"),
        ("Gather<axis=0>(past, zero)", "Gather<axis=0>(past, last)"),
        ("Add(m, b)", "Add(b, m)"),
    ],
)
def test_a_step_with_a_past_is_one_operator(old: str, new: str) -> None:
    assert_rewrites(PASS, graph(NODES.replace(old, new)), graph(FUSED), backend=ORT, runtime="none")


@pytest.mark.parametrize(("queries", "places"), [(1, 4), (3, 5), (2, 0)])
def test_the_results_are_equal(queries: int, places: int) -> None:
    head = (
        f"(float[2,{queries},4] x, float[2,2,2,{places},2] past) => "
        f"(float[2,{queries},4] y, float[2,2,2,{queries + places},2] present)"
    )
    assert_rewrites(PASS, graph(NODES, head), graph(FUSED, head), backend=ORT)


def test_a_mask_of_known_sizes_is_sliced_already() -> None:
    head = "(float[1,2,4] x, float[2,1,2,3,2] past) => (float[1,2,4] y, float[2,1,2,5,2] present)"
    seen = "bool[1,1,2,5] seen = {1,1,1,1,0, 1,1,1,1,1}"
    nodes = NODES.replace(MASK, "")
    text = f"{head} {spoken_of(nodes, *CONSTANTS, seen)} {{ {nodes} }}"
    assert_rewrites(PASS, text, graph(FUSED, head), backend=ORT)
    assert_unchanged(
        PASS,
        text.replace("1,1,1,1,0,", "1,1,1,0,0,"),
        backend=ORT,
        because="the mask is not exactly causal",
    )


@pytest.mark.parametrize(
    ("old", "new", "because"),
    [
        ("Softmax<axis=3>", "Softmax<axis=2>", "Softmax is not float32 over the last axis"),
        ("Split<axis=2>(a, thirds)", "Split<axis=2>(a, uneven)", "queries, keys, values are not one split product"),
        ("Add(m, b)", "Abs(m)", "queries, keys, values are not one split product"),
        ("a = Add(m, b)", "n = Abs(m) a = Add(n, b)",
         "queries, keys, values are not one split product"),
        ("Gather<axis=0>(past, one)", "Abs(v2)", "keys and values have different pasts"),
        (HALVES, HALVES.replace("pk", "h").replace("pv", "pk").replace("h =", "pv ="),
         "keys are not the first half of the past"),
        ("Transpose<perm=[0,2,1,3]>(v1)", "Transpose<perm=[0,2,1,3]>(k1)",
         "keys or values are split differently"),
        ("Reshape(t, whole)", "Reshape(t, two)", "the output is not the merged heads"),
        ("Concat<axis=0>(ku, vu)", "Concat<axis=0>(vu, ku)",
         "keys and values are not stored as one tensor"),
        ("Slice(tri, ", "Slice(all, ", "the mask is not exactly causal"),
        ("Slice(t1, none, e1", "Slice(t1, none, s1", "the mask is not exactly causal"),
        ("hidden)", "small)", "the mask is not exactly causal"),
        ("Mul(s, c)", "Mul(s, negative)", "the scale is not one positive number"),
    ],
)  # fmt: skip
def test_forms_unsupported_by_the_operator_stay(old: str, new: str, because: str) -> None:
    assert old in NODES
    assert_unchanged(PASS, graph(NODES.replace(old, new)), backend=ORT, because=because)


def test_a_triangle_of_truth_values_needs_no_cast() -> None:
    nodes = NODES.replace(" seen = Cast<to=9>(t2)", "").replace("t2 = Slice", "seen = Slice")
    text = graph(nodes).replace("uint8[1,1,16,16] tri", "bool[1,1,16,16] tri")
    assert_rewrites(PASS, text, graph(FUSED), backend=ORT, runtime="none")


def test_heads_of_another_past_stay() -> None:
    head = HEAD.replace("float[2,B,2,P,2] past", "float[2,1,2,P,2] past")
    assert_unchanged(PASS, graph(NODES, head), backend=ORT, because="the past has other heads")


def test_a_past_of_three_parts_is_no_cache_of_keys_and_values() -> None:
    head = HEAD.replace("float[2,B,2,P,2] past", "float[3,B,2,P,2] past")
    assert_unchanged(PASS, graph(NODES, head), backend=ORT, because="the past has other heads")


def test_heads_of_a_size_that_is_not_known_stay() -> None:
    text = graph(NODES.replace("heads", "sizes")).replace("past) =>", "past, int64[4] sizes) =>")
    assert_unchanged(PASS, text, backend=ORT, because="number and size of heads are not known")


def test_wide_batches_stay_unless_asked_for() -> None:
    head = HEAD.replace("float[B,S,4] x", "float[B,S,512] x, float[512,12] w")
    text = graph(NODES, head).replace(f"float[4,12] w = {{{numbers(48, 0.1)}}}, ", "")
    assert_unchanged(PASS, text, backend=ORT, because="one product projects wide batches faster")
    fused = graph(FUSED, head).replace(f"float[4,12] w = {{{numbers(48, 0.1)}}}, ", "")
    assert_rewrites(PASS, text, fused, backend=ORT, runtime="none", wide=True)


def test_other_targets_keep_the_parts() -> None:
    assert_unchanged(PASS, graph(NODES))
