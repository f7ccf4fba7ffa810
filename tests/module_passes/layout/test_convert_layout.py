import numpy as np

from tiered import Model, default_pipeline, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse


def test_transposes_pass_a_concat_and_cancel() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x, float[1,2,2,3] z) => (float[1,2,2,6] y) { a = Transpose<perm=[0,3,1,2]>(x)  b = Transpose<perm=[0,3,1,2]>(z)  c = Concat<axis=1>(a, b)  y = Transpose<perm=[0,2,3,1]>(c) }",
        "(float[1,2,2,3] x, float[1,2,2,3] z) => (float[1,2,2,6] y) { y = Concat<axis=3>(x, z) }",
    )


def test_a_constant_of_fewer_dims_is_permuted_here() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[3,1,1] s = {1,2,3}> { a = Transpose<perm=[0,3,1,2]>(x)  b = Mul(a, s)  y = Transpose<perm=[0,2,3,1]>(b) }",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[1,1,3] s = {1,2,3}> { y = Mul(x, s) }",
    )


def test_the_smaller_tensor_is_permuted() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,3,4,4] y) <int64[8] p = {0,1,1,0,0,1,1,0}> { a = Pad(x, p)  y = Transpose<perm=[0,3,1,2]>(a) }",
        "(float[1,2,2,3] x) => (float[1,3,4,4] y) <int64[8] p = {0,0,1,1,0,0,1,1}> { a = Transpose<perm=[0,3,1,2]>(x)  y = Pad(a, p) }",
    )


def test_older_opsets_say_it_their_way() -> None:
    assert_rewrites(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,1] y) { a = Transpose<perm=[0,3,1,2]>(x)  b = ReduceMax<axes=[1]>(a)  y = Transpose<perm=[0,2,3,1]>(b) }",
        "(float[1,2,2,3] x) => (float[1,2,2,1] y) { y = ReduceMax<axes=[3]>(x) }",
        opset=11,
    )


def test_what_an_operator_fixes_stays() -> None:
    assert_unchanged(
        "convert_layout",
        "(float[1,2,2,3] x) => (float[1,2,2,3] y) <float[3,3,1,1] w = {1,2,3,4,5,6,7,8,9}> { a = Transpose<perm=[0,3,1,2]>(x)  b = Conv(a, w)  y = Transpose<perm=[0,2,3,1]>(b) }",
    )


def test_one_axis_never_stands_in_two_places() -> None:
    assert_unchanged(
        "convert_layout",
        "(float[2,2] x) => (float[2,2] y) { a = Transpose<perm=[1,0]>(x)  b = Add(a, x)  y = Relu(b) }",
    )


def test_a_captured_value_is_permuted_for_the_body_too() -> None:
    proto = parse(
        "(float[2,3] x, bool c) => (float[3,2] y) { t = Transpose(x)  r = Relu(t)  u = Transpose(r)  "
        "y = If(c) <then_branch = g () => (float[3,2] a) { a = Transpose(u) }, "
        "else_branch = h () => (float[3,2] b) { b = Neg(r) }> }"
    )
    result = get_pass("convert_layout").apply(proto)
    Model.from_proto(result).check_view()
    feeds = make_inputs(proto, seed=3).feeds
    for taken in (True, False):
        feeds = {**feeds, "c": np.array(taken)}
        before, after = (Session(each).run(feeds)["y"] for each in (proto, result))
        assert np.array_equal(before, after)


def test_it_stands_in_the_default_pipeline() -> None:
    assert "convert_layout" in str(default_pipeline())
