from tiered.testing import assert_rewrites, assert_unchanged

NAME = "replace_gather_with_gathernd"


def test_rows_are_looked_up_by_their_first_axis() -> None:
    assert_rewrites(
        NAME,
        "(float[4,3] x, int64[N,2] s) => (float[N,2,3] y)"
        " <int64 m = {4}> { i = Mod(s, m) y = Gather(x, i) }",
        "(float[4,3] x, int64[N,2] s) => (float[N,2,3] y)"
        " <int64 m = {4}, int64[1] a = {2}> { i = Mod(s, m) u = Unsqueeze(i, a) y = GatherND(x, u) }",
    )


def test_indices_become_int64() -> None:
    assert_rewrites(
        NAME,
        "(float[4] x) => (float[2] y) <int32[2] i = {-1,2}> { y = Gather(x, i) }",
        "(float[4] x) => (float[2] y) <int32[2] i = {-1,2}, int64[1] a = {1}>"
        " { c = Cast<to=7>(i) u = Unsqueeze(c, a) y = GatherND(x, u) }",
    )


def test_another_axis_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[4,3] x) => (float[4,2] y) <int64[2] i = {1,2}> { y = Gather<axis=1>(x, i) }",
        because="the axis is not the first",
    )


def test_before_opset_11_it_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[4,3] x) => (float[2,3] y) <int64[2] i = {1,2}> { y = Gather(x, i) }",
        because="before opset 11",
        opset=10,
    )


def test_an_unknown_rank_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[4,3] x, int64[M] t) => (float[A,B] y) <int64[2] i = {0,0}>"
        " { r = Reshape(x, t) y = Gather(r, i) }",
        because="a rank or the dtype",
    )
