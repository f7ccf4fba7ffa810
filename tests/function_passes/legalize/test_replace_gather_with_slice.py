from tiered.testing import assert_rewrites, assert_unchanged

NAME = "replace_gather_with_slice"


def test_one_element_of_an_axis_is_cut_out() -> None:
    assert_rewrites(
        NAME,
        "(float[N,4,3] x) => (float[N,3] y) <int64 i = {2}> { y = Gather<axis=1>(x, i) }",
        "(float[N,4,3] x) => (float[N,3] y) <int64[1] a = {2}, int64[1] b = {3}, int64[1] c = {1}>"
        " { s = Slice(x, a, b, c) y = Squeeze(s, c) }",
    )


def test_an_index_counts_from_the_end() -> None:
    assert_rewrites(
        NAME,
        "(float[4,3] x) => (float[3] y) <int32 i = {-1}> { y = Gather(x, i) }",
        "(float[4,3] x) => (float[3] y) <int64[1] a = {3}, int64[1] b = {4}, int64[1] c = {0}>"
        " { s = Slice(x, a, b, c) y = Squeeze(s, c) }",
    )


def test_several_indices_stay() -> None:
    assert_unchanged(
        NAME,
        "(float[4,3] x) => (float[2,3] y) <int64[2] i = {1,0}> { y = Gather(x, i) }",
        because="indices is not a constant scalar",
    )


def test_a_symbolic_dim_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[N,3] x) => (float[3] y) <int64 i = {1}> { y = Gather(x, i) }",
        because="the dim of the axis is not a number",
    )


def test_an_index_out_of_range_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[4,3] x) => (float[3] y) <int64 i = {4}> { y = Gather(x, i) }",
        because="the index is out of range",
    )
