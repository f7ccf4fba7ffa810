from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_squeeze_unsqueeze"


def test_a_squeeze_removes_the_unsqueezed_dims() -> None:
    for opset in (11, 21):
        axes = ("<axes=[0,-1]>(x)", "<axes=[3,0]>(h)") if opset == 11 else ("(x, a)", "(h, b)")
        constants = "" if opset == 11 else "<int64[2] a = {0,-1}, int64[2] b = {3,0}>"
        assert_rewrites(
            PASS,
            f"(float[N,3] x) => (float[N,3] y) {constants}"
            f" {{ h = Unsqueeze{axes[0]}  i = Squeeze{axes[1]}  y = Relu(i) }}",
            "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
            opset=opset,
        )


def test_an_unsqueeze_restores_the_squeezed_dims() -> None:
    assert_rewrites(
        PASS,
        "(float[N,1,3] x) => (float[N,1,3] y) <int64[1] a = {1}, int64[1] b = {-2}>"
        " { h = Squeeze(x, a)  i = Unsqueeze(h, b)  y = Relu(i) }",
        "(float[N,1,3] x) => (float[N,1,3] y) { y = Relu(x) }",
    )


def test_the_inner_one_may_have_other_users() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[1,3] h, float[3] y) <int64[1] a = {0}>"
        " { h = Unsqueeze(x, a)  i = Squeeze(h, a)  y = Relu(i) }",
        "(float[3] x) => (float[1,3] h, float[3] y) <int64[1] a = {0}>"
        " { h = Unsqueeze(x, a)  y = Relu(x) }",
    )


def test_equal_axes_of_an_unknown_rank_are_the_same() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, int64[K] s) => (float[M] y) <int64[1] a = {-1}>"
        " { r = Reshape(x, s)  h = Unsqueeze(r, a)  i = Squeeze(h, a)  y = Relu(i) }",
        "(float[N] x, int64[K] s) => (float[M] y) { r = Reshape(x, s)  y = Relu(r) }",
        runtime="none",
    )


def test_other_axes_move_a_dim() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[3,1] y) <int64[1] a = {0}, int64[1] b = {1}>"
        " { h = Squeeze(x, a)  y = Unsqueeze(h, b) }",
        because="the axes may differ",
    )


def test_axes_from_both_ends_of_an_unknown_rank_may_differ() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (float[M] y) <int64[1] a = {-1}, int64[1] b = {1}>"
        " { r = Reshape(x, s)  h = Unsqueeze(r, a)  i = Squeeze(h, b)  y = Relu(i) }",
        because="the axes may differ",
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x, int64[1] a) => (float[1,3] y) { h = Squeeze(x, a)  y = Unsqueeze(h, a) }",
        because="axes is not a constant",
    )


def test_empty_axes_mean_all_in_onnxruntime() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[K] y) <int64[0] a = {}> { h = Unsqueeze(x, a)  y = Squeeze(h, a) }",
        because="empty axes mean none or all",
    )


def test_a_squeeze_without_axes_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[3] y) <int64[1] a = {0}> { h = Unsqueeze(x, a)  y = Squeeze(h) }",
    )


def test_a_squeeze_of_more_dims_removes_the_others() -> None:
    assert_rewrites(
        PASS,
        "(float[1,6,1,4] x) => (float[6,4] y) <int64[1] a = {1}, int64[3] b = {0,-2,1}>"
        " { h = Unsqueeze(x, a)  y = Squeeze(h, b) }",
        "(float[1,6,1,4] x) => (float[6,4] y) <int64[2] b = {0,2}> { y = Squeeze(x, b) }",
    )


def test_an_unsqueeze_of_more_dims_adds_the_rest() -> None:
    assert_rewrites(
        PASS,
        "(float[6,4] x) => (float[1,6,4,1] y) <int64[3] a = {0,2,-1}, int64[1] b = {2}>"
        " { h = Unsqueeze(x, a)  y = Squeeze(h, b) }",
        "(float[6,4] x) => (float[1,6,4,1] y) <int64[2] a = {0,3}> { y = Unsqueeze(x, a) }",
    )


def test_dims_that_neither_has_alone_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[1,6] x) => (float[1,6] y) <int64[2] a = {0,1}, int64[2] b = {1,2}>"
        " { h = Unsqueeze(x, a)  y = Squeeze(h, b) }",
        because="the axes may differ",
    )


def test_an_axis_that_a_squeeze_names_twice_counts_once() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3,1] y) <int64[2] a = {0,-1}, int64[2] b = {0,0}>"
        " { h = Unsqueeze(x, a)  i = Squeeze(h, b)  y = Relu(i) }",
        "(float[N,3] x) => (float[N,3,1] y) <int64[1] c = {2}> { h = Unsqueeze(x, c)  y = Relu(h) }",
    )
