from tiered import Model, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_consecutive_unsqueeze"


def test_the_first_axes_move_where_the_second_make_room() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[1,2,1,3] y) <int64[1] p = {1}, int64[1] q = {0}>"
        " { a = Unsqueeze(x, p)  y = Unsqueeze(a, q) }",
        "(float[2,3] x) => (float[1,2,1,3] y) <int64[2] p = {0,2}> { y = Unsqueeze(x, p) }",
    )


def test_negative_axes_count_in_each_result() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,1,1,3,1] y) <int64[1] p = {-2}, int64[2] q = {-1,2}>"
        " { a = Unsqueeze(x, p)  y = Unsqueeze(a, q) }",
        "(float[2,3] x) => (float[2,1,1,3,1] y) <int64[3] p = {1,2,4}> { y = Unsqueeze(x, p) }",
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[1,N,1] y) { a = Unsqueeze<axes=[0]>(x)  y = Unsqueeze<axes=[2]>(a) }",
        "(float[N] x) => (float[1,N,1] y) { y = Unsqueeze<axes=[0,2]>(x) }",
        opset=7,
    )


def test_a_scalar_becomes_a_matrix_at_once() -> None:
    assert_rewrites(
        PASS,
        "(float x) => (float[1,1] y) <int64[1] p = {0}> { a = Unsqueeze(x, p)  y = Unsqueeze(a, p) }",
        "(float x) => (float[1,1] y) <int64[2] p = {0,1}> { y = Unsqueeze(x, p) }",
    )


def test_an_unknown_rank_needs_axes_from_the_front() -> None:
    text = (
        "(float[N] x, int64[K] s) => (float[M] y) <int64[1] a = {{0}}, int64[1] b = {{{}}}>"
        " {{ r = Reshape(x, s)  h = Unsqueeze(r, a)  i = Unsqueeze(h, b)  y = Relu(i) }}"
    )
    assert_rewrites(
        PASS,
        text.format(0),
        "(float[N] x, int64[K] s) => (float[M] y) <int64[2] a = {0,1}>"
        " { r = Reshape(x, s)  i = Unsqueeze(r, a)  y = Relu(i) }",
        runtime="none",
    )
    assert_unchanged(
        PASS, text.format(-1), because="an axis counts from the end of an unknown rank"
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, int64[1] a) => (float[1,1,3] y) <int64[1] b = {0}>"
        " { h = Unsqueeze(x, a)  y = Unsqueeze(h, b) }",
        because="axes is not a constant",
    )


def test_an_intermediate_value_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[1,3] z, float[1,1,3] y) <int64[1] a = {0}>"
        " { h = Unsqueeze(x, a)  y = Unsqueeze(h, a)  z = Relu(h) }",
        because="the intermediate value has other consumers",
    )


def test_an_intermediate_value_with_several_fused_consumers_is_removed() -> None:
    interface = "(float[3] x) => (float[1,1,3] y, float[1,3,1] z)"
    assert_rewrites(
        PASS,
        f"{interface} <int64[1] a = {{0}}, int64[1] b = {{2}}>"
        " { h = Unsqueeze(x, a)  y = Unsqueeze(h, a)  z = Unsqueeze(h, b) }",
        f"{interface} <int64[2] a = {{0,1}}, int64[2] b = {{0,2}}>"
        " { y = Unsqueeze(x, a)  z = Unsqueeze(x, b) }",
    )


def test_an_axis_that_no_tensor_has_takes_no_memory() -> None:
    far = 1 << 60
    text = (
        f"(float x) => (float y) <int64[1] a = {{{far}}}, int64[2] b = {{{far}, 0}}> "
        "{ h = Unsqueeze(x, a)  y = Unsqueeze(h, b) }"
    )
    model = Model.from_proto(parse(text))
    for value in model.main.values.values():
        model.main.set_type(value, None)
    get_pass(PASS).apply(model)
    (node,) = model.main.nodes
    axes = node.inputs[1]
    assert axes is not None
    assert axes.const is not None
    assert axes.const.tolist() == [0, far, far + 2]
