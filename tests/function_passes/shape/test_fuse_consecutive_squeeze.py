from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_squeeze"


def test_the_second_axes_count_in_the_squeezed_tensor() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,1,3,1] x) => (float[2,3] y) <int64[1] a = {0}, int64[2] b = {1,-1}>"
        " { h = Squeeze(x, a)  y = Squeeze(h, b) }",
        "(float[1,2,1,3,1] x) => (float[2,3] y) <int64[3] a = {0,2,4}> { y = Squeeze(x, a) }",
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,1,3] x) => (float[2,3] y) { h = Squeeze<axes=[2]>(x)  y = Squeeze<axes=[0]>(h) }",
        "(float[1,2,1,3] x) => (float[2,3] y) { y = Squeeze<axes=[0,2]>(x) }",
        opset=11,
    )


def test_no_axes_at_last_are_no_axes_at_all() -> None:
    assert_rewrites(
        PASS,
        "(float[1,N,1] x) => (float[K] y) <int64[1] a = {0}> { h = Squeeze(x, a)  y = Squeeze(h) }",
        "(float[1,N,1] x) => (float[K] y) { y = Squeeze(x) }",
    )


def test_an_unknown_rank_needs_axes_from_the_front() -> None:
    text = (
        "(float[N] x, int64[K] s) => (float[M] y) <int64[1] a = {{1}}, int64[1] b = {{{}}}>"
        " {{ r = Reshape(x, s)  h = Squeeze(r, a)  i = Squeeze(h, b)  y = Relu(i) }}"
    )
    assert_rewrites(
        PASS,
        text.format(1),
        "(float[N] x, int64[K] s) => (float[M] y) <int64[2] a = {1,2}>"
        " { r = Reshape(x, s)  i = Squeeze(r, a)  y = Relu(i) }",
        runtime="none",
    )
    assert_unchanged(
        PASS, text.format(-1), because="an axis counts from the end of an unknown rank"
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,3] x, int64[1] a) => (float[3] y) <int64[1] b = {0}>"
        " { h = Squeeze(x, a)  y = Squeeze(h, b) }",
        because="axes is not a constant",
    )


def test_a_first_one_without_axes_leaves_nothing_to_name() -> None:
    assert_unchanged(
        PASS,
        "(float[1,N,M] x) => (float[K] y) <int64[1] a = {0}> { h = Squeeze(x)  y = Squeeze(h, a) }",
        because="the first one names no axes",
    )


def test_an_empty_list_of_axes_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,3] x) => (float[A,B] y) <int64[1] a = {0}, int64[0] b = {}>"
        " { h = Squeeze(x, a)  y = Squeeze(h, b) }",
        because="empty axes mean none or all",
    )


def test_a_middle_that_is_an_output_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,3] x) => (float[1,3] h, float[3] y) <int64[1] a = {0}>"
        " { h = Squeeze(x, a)  y = Squeeze(h, a) }",
        because="an inner value is a graph output",
    )


def test_an_axis_that_is_named_twice_counts_once() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1,2,1] x) => (float[1,2] y) <int64[2] a = {0,0}, int64[1] b = {-1}>"
        " { h = Squeeze(x, a)  y = Squeeze(h, b) }",
        "(float[1,1,2,1] x) => (float[1,2] y) <int64[2] c = {0,3}> { y = Squeeze(x, c) }",
    )
