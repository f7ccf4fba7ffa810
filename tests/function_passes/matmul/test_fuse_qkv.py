import pytest

from tests.small import made_by, parsed
from tiered import PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_qkv"
HEADS = "(float[1,2,2,2] q, float[1,2,2,2] k, float[1,2,2,2] v)"
INPUTS = (
    "float[1,2,4] x, float[4,4] wq, float[4,4] wk, float[4,4] wv, float[4] bq, float[4] bk,"
    " float[4] bv"
)
BRANCHES = (
    "a = MatMul(x, wq) b = MatMul(x, wk) c = MatMul(x, wv) d = Add(a, bq) e = Add(b, bk)"
    " f = Add(c, bv) q = Reshape(d, sh) k = Reshape(e, sh) v = Reshape(f, sh)"
)


def test_three_projections_become_one() -> None:
    assert_rewrites(
        PASS,
        f"({INPUTS}) => {HEADS} <int64[4] sh = {{1,2,2,2}}> {{ {BRANCHES} }}",
        f"({INPUTS}) => {HEADS} <int64[5] sh = {{1,2,3,2,2}}, int64[1] ax = {{0}},"
        " int64[3] sp = {1,1,1}> { w = Concat<axis=1>(wq, wk, wv) g = Concat<axis=0>(bq, bk, bv)"
        " m = MatMul(x, w) n = Add(m, g) r = Reshape(n, sh) t = Transpose<perm=[2,0,1,3,4]>(r)"
        " q1, k1, v1 = Split<axis=0>(t, sp) q = Squeeze(q1, ax) k = Squeeze(k1, ax)"
        " v = Squeeze(v1, ax) }",
    )


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ("bv", "s = ReduceMean<keepdims=0>(q, ax) bv = Reshape(s, flat)"),
        ("wv", "s = Reshape(q, two) wv = MatMul(p, s)"),
    ],
)
def test_a_branch_that_needs_another_comes_after_it(part: str, made: str) -> None:
    inputs = ", ".join(each for each in INPUTS.split(", ") if not each.endswith(part))
    first = ("a = MatMul(x, wq)", "d = Add(a, bq)", "q = Reshape(d, sh)")
    others = BRANCHES
    for node in first:
        others = others.replace(node, "")
    assert_unchanged(
        PASS,
        f"({inputs}, float[4,2] p) => {HEADS} <int64[4] sh = {{1,2,2,2}}, int64[2] ax = {{0,1}},"
        f" int64[1] flat = {{-1}}, int64[2] two = {{2,4}}> {{ {' '.join(first)} {made} {others} }}",
        because="a matrix depends on another branch",
    )


def test_heads_that_are_transposed_are_shared_out_where_they_are() -> None:
    moved = " ".join(
        f"{name} = Transpose<perm={perm}>({name}0)"
        for name, perm in (("q", "[0,2,1,3]"), ("k", "[0,2,3,1]"), ("v", "[0,2,1,3]"))
    )
    before = BRANCHES
    for name in "qkv":
        before = before.replace(f"{name} = Reshape", f"{name}0 = Reshape")
    assert_rewrites(
        PASS,
        f"({INPUTS}) => {HEADS} <int64[4] sh = {{1,2,2,2}}> {{ {before} {moved} }}",
        f"({INPUTS}) => {HEADS} <int64[5] sh = {{1,2,3,2,2}}, int64[1] ax = {{2}},"
        " int64[3] sp = {1,1,1}> { w = Concat<axis=1>(wq, wk, wv) g = Concat<axis=0>(bq, bk, bv)"
        " m = MatMul(x, w) n = Add(m, g) r = Reshape(n, sh)"
        " q1, k1, v1 = Split<axis=2>(r, sp) q0 = Squeeze(q1, ax) k0 = Squeeze(k1, ax)"
        f" v0 = Squeeze(v1, ax) {moved} }}",
    )


def test_constants_are_concatenated_now_and_dims_may_be_copied() -> None:
    weights = ", ".join(
        f"float[2,2] w{name} = {{{value},0,0,{value}}}, float[2] b{name} = {{{value},1}}"
        for name, value in (("q", 1), ("k", 2), ("v", 3))
    )
    io = "(float[N,T,2] x) => (float[N,T,2,1] q, float[N,T,2,1] k, float[N,T,2,1] v)"
    assert_rewrites(
        PASS,
        f"{io} <{weights}, int64[4] sh = {{0,0,2,1}}> {{ {BRANCHES} }}",
        f"{io} <float[2,6] w = {{1,0,2,0,3,0,0,1,0,2,0,3}}, float[6] b = {{1,1,2,1,3,1}},"
        " int64[5] sh = {0,0,3,2,1}, int64[1] ax = {0}, int64[3] sp = {1,1,1}>"
        " { m = MatMul(x, w) n = Add(m, b) r = Reshape(n, sh) t = Transpose<perm=[2,0,1,3,4]>(r)"
        " q1, k1, v1 = Split<axis=0>(t, sp) q = Squeeze(q1, ax) k = Squeeze(k1, ax)"
        " v = Squeeze(v1, ax) }",
    )


@pytest.mark.parametrize(
    ("branches", "because"),
    [
        (BRANCHES.replace("Reshape(f, sh)", "Reshape(f, other)"), "the branches have other heads"),
        (
            BRANCHES.replace("MatMul(x, wk)", "MatMul(x, wq)").replace("Add(b, bk)", "Add(b, bq)"),
            "a matrix has other consumers",
        ),
        (
            f"{BRANCHES} o = MatMul(x, wo) i = Add(o, bv) z = Reshape(i, sh)",
            "not three of one shape",
        ),
        (BRANCHES.replace("Add(c, bv)", "Sub(c, bv)"), None),
        (BRANCHES.replace("Reshape(f, sh)", "Unsqueeze(f, last)"), None),
        (BRANCHES.replace("Add(c, bv)", "Add(c, bs)"), None),
        (BRANCHES.replace("MatMul(x, wv)", "MatMul(u, wv)"), None),
    ],
)
def test_it_declines(branches: str, because: str | None) -> None:
    outputs = HEADS.replace("[1,2,2,2] v", "[1,2,C,D] v")
    outputs = outputs.replace(")", ", float[1,2,2,2] z)") if "z =" in branches else outputs
    assert_unchanged(
        PASS,
        f"({INPUTS}, float[4,4] wo, float[1] bs, float[1,2,4] u) => {outputs}"
        f" <int64[4] sh = {{1,2,2,2}}, int64[4] other = {{1,2,4,1}}, int64[1] last = {{-1}}>"
        f" {{ {branches} }}",
        because=because,
    )


ROWS = INPUTS.replace("float[1,2,4] x", "float[N,4] x")
FUSED_ROWS = (
    "w = Concat<axis=1>(wq, wk, wv) g = Concat<axis=0>(bq, bk, bv) m = MatMul(x, w)"
    " n = Add(m, g) r = Reshape(n, sh) t = Transpose<perm=[2,0,1,3,4]>(r)"
    " q1, k1, v1 = Split<axis=0>(t, sp) q = Squeeze(q1, ax) k = Squeeze(k1, ax)"
    " v = Squeeze(v1, ax)"
)


@pytest.mark.parametrize(
    ("between", "heads", "fused"),
    [
        (None, "{-1,2,2,2}", "{-1,2,3,2,2}"),
        (None, "{0,1,2,2}", "{0,1,3,2,2}"),
        ("{-1,2,4}", "{0,2,2,2}", "{-1,2,3,2,2}"),
        ("{-1,2,4}", "{0,0,2,2}", "{-1,2,3,2,2}"),
        ("{-1,2,4}", "{0,-1,2,2}", "{-1,2,3,2,2}"),
        ("{2,-1,4}", "{-1,0,2,2}", "{2,-1,3,2,2}"),
        ("{-1,2,4}", "{-1,0,2,2}", "{-1,2,3,2,2}"),
    ],
)
def test_rows_of_a_matrix_become_heads(between: str | None, heads: str, fused: str) -> None:
    """BERT of TensorFlow: MatMul of rank 2, Reshape, Add, Reshape."""
    out = ", ".join(f"float[A,B,2,2] {name}" for name in "qkv")
    branches = BRANCHES
    constants = f"int64[4] sh = {heads}"
    if between:
        constants += f", int64[3] mid = {between}"
        for name, made in zip("abc", "def", strict=True):
            branches = branches.replace(f"{made} = Add({name},", f"{made} = Add({name}3,").replace(
                f"{name} = MatMul", f"{name}2 = MatMul"
            )
            branches += f" {name}3 = Reshape({name}2, mid)"
    ordered = " ".join(sorted(branches.replace(") ", ")|").split("|"), key=_stage))
    inputs = ROWS.replace("float[N,4]", "float[4,4]")
    assert_rewrites(
        PASS,
        f"({inputs}) => ({out}) <{constants}> {{ {ordered} }}",
        f"({inputs}) => ({out}) <int64[5] sh = {fused}, int64[1] ax = {{0}},"
        f" int64[3] sp = {{1,1,1}}> {{ {FUSED_ROWS} }}",
    )


def _stage(node: str) -> int:
    """Return the place of a node in its branch."""
    made = node.split(" = ")
    kinds = ("MatMul", "mid", "Add", "sh")
    return next(at for at, kind in enumerate(kinds) if kind in made[1])


def test_rows_whose_heads_copy_the_columns_stay() -> None:
    out = ", ".join(f"float[A,B,2,2] {name}" for name in "qkv")
    assert_unchanged(
        PASS,
        f"({ROWS}) => ({out}) <int64[4] sh = {{-1,0,2,2}}> {{ {BRANCHES} }}",
        because="fewer than three products become heads",
    )


def test_remarks_and_names_are_those_of_the_first_product() -> None:
    text = f"({INPUTS}) => {HEADS} <int64[4] sh = {{1,2,2,2}}, int64[4] one = {{1,2,4,1}}> {{ {BRANCHES} }}"
    for old, new, because in [
        ("d = Add(a, bq)", "d = Sub(a, bq)", "fewer than three products become heads"),
        ("float[4,4] wv", "float[K,4] wv", "the branches are not three of one shape"),
        ("v = Reshape(f, sh)", "v = Reshape(f, one)", "the branches have other heads"),
        ("c = MatMul(x, wv)", "c = MatMul(x, wk)", "a matrix has other consumers"),
    ]:
        assert old in text
        model, context = parsed(text.replace(old, new)), PassContext.isolated(opt_level=4)
        get_pass(PASS).apply(model, context)
        found = [(remark.reason, remark.nodes) for remark in context.remarks]
        assert found == [(because, (made_by(model, "a").label,))], because
