from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_consecutive_gather"


def test_the_second_indices_select_among_the_first() -> None:
    for second in ("int64 j = {-1}", "int32 j = {2}"):
        assert_rewrites(
            PASS,
            f"(float[4,N] x) => (float[N] y) <int64[3] i = {{0,3,1}}, {second}>"
            " { g = Gather(x, i)  y = Gather(g, j) }",
            "(float[4,N] x) => (float[N] y) <int64 k = {1}> { y = Gather(x, k) }",
        )


def test_the_shape_of_the_second_indices_remains() -> None:
    assert_rewrites(
        PASS,
        "(float[N,4] x) => (float[N,2,2] y) <int64[3] i = {0,-1,1}, int64[2,2] j = {0,1,1,2}>"
        " { g = Gather<axis=1>(x, i)  y = Gather<axis=-1>(g, j) }",
        "(float[N,4] x) => (float[N,2,2] y) <int64[2,2] k = {0,-1,-1,1}>"
        " { y = Gather<axis=-1>(x, k) }",
    )


def test_an_empty_selection_is_empty() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float[0] y) <int64[3] i = {0,3,1}, int64[0] j = {}>"
        " { g = Gather(x, i)  y = Gather(g, j) }",
        "(float[4] x) => (float[0] y) <int64[0] j = {}> { y = Gather(x, j) }",
    )


def test_other_consumers_of_the_first_keep_it() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float y, float[2] g) <int64[2] i = {3,1}, int64 j = {0}>"
        " { g = Gather(x, i)  y = Gather(g, j) }",
        "(float[4] x) => (float y, float[2] g) <int64[2] i = {3,1}, int64 k = {3}>"
        " { g = Gather(x, i)  y = Gather(x, k) }",
    )


def test_other_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4,4] x) => (float[2,2] y) <int64[2] i = {3,1}>"
        " { g = Gather(x, i)  y = Gather<axis=1>(g, i) }",
        because="the axes may differ",
    )


def test_a_first_scalar_or_matrix_changes_the_rank() -> None:
    for first in ("int64 i = {1}", "int64[1,2] i = {1,2}"):
        assert_unchanged(
            PASS,
            f"(float[4,4] x) => (float[R] y) <{first}, int64[1] j = {{0}}>"
            " { g = Gather(x, i)  h = Gather(g, j)  s = Shape(h)  z = Cast<to=1>(s)  y = Relu(z) }",
            because="the first indices are not a list",
        )


def test_an_index_out_of_range_still_fails() -> None:
    for index in (2, -3):
        assert_unchanged(
            PASS,
            f"(float[4] x) => (float[1] y) <int64[2] i = {{3,1}}, int64[1] j = {{{index}}}>"
            " { g = Gather(x, i)  y = Gather(g, j) }",
            because="an index is out of range",
        )


def test_indices_from_elsewhere_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x, int64[2] i) => (float[1] y) <int64[1] j = {0}>"
        " { g = Gather(x, i)  y = Gather(g, j) }",
    )


def test_sizes_that_a_new_layout_reorders_are_gathered_once() -> None:
    text = """(float[N,H,W,3] x) => (float[N,P,Q,3] y) <float[3,3,3,3] w, int64 one = {1}>
        { t = Transpose<perm=[0,3,1,2]>(x)  c = Conv(t, w)  u = Transpose<perm=[0,2,3,1]>(c)
          r = Relu(u)  s = Shape(r)  h = Gather(s, one)  f = Cast<to=1>(h)  m = Mul(r, f)
          v = Transpose<perm=[0,3,1,2]>(m)  d = Conv(v, w)  y = Transpose<perm=[0,2,3,1]>(d) }"""
    text = text.replace("w,", "w = {" + ",".join(["1"] * 81) + "},")
    result = optimize(parse(text), opt_level=3)
    kinds = [node.op_type for node in result.graph.node]
    assert kinds.count("Transpose") == 2
    assert kinds.count("Gather") == 1
