import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_pad"


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads_of_0_add_nothing_in_any_mode(mode: str) -> None:
    assert_rewrites(
        PASS,
        f'(float[N,3] x) => (float[N,3] y) <int64[4] p = {{0,0,0,0}}> {{ a = Pad<mode="{mode}">(x, p) y = Relu(a) }}',
        "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
    )


def test_the_axes_and_the_value_do_not_matter() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x, float v, int64[1] axes) => (float[N,3] y) <int64[2] p = {0,0}>"
        " { a = Pad(x, p, v, axes) y = Relu(a) }",
        "(float[N,3] x, float v, int64[1] axes) => (float[N,3] y) { y = Relu(x) }",
        runtime="none",
    )


def test_pads_may_be_an_attribute() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) { a = Pad<pads=[0,0,0,0], value=2.0>(x) y = Relu(a) }",
        "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
        opset=10,
    )
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,4] y) { y = Pad<pads=[0,0,0,1]>(x) }",
        because="it pads or crops",
        opset=10,
    )


def test_pads_that_the_caller_decides_are_not_known() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[4] p) => (float[A,B] y) { y = Pad(x, p) }",
        because="pads is not a constant",
    )


def test_pads_that_the_call_of_a_function_decides_are_not_known() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 8, opset_import: ["" : 10, "d" : 1]>'
        " g (float[2] x) => (float[N] y) { y = d.f<p=[0,0]>(x) }"
        ' <domain: "d", opset_import: ["" : 10]> f <p> (a) => (b) { b = Pad<pads: ints = @p>(a) }',
        because="pads is not a constant",
    )


def test_negative_pads_crop() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[2] y) <int64[2] p = {0,-1}> { y = Pad(x, p) }",
        because="it pads or crops",
    )
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[3] y) <int64[2] p = {1,-1}> { y = Pad(x, p) }",
        because="it pads or crops",
    )
