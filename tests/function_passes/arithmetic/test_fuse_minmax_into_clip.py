import pytest

from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_minmax_into_clip"
BOUNDS = "float l = {-1}, float h = {6}"
CLIPPED = f"(float[N,3] x) => (float[N,3] y) <{BOUNDS}> {{ y = Clip(x, l, h) }}"


@pytest.mark.parametrize(
    "nodes",
    [
        "t = Max(x, l) y = Min(t, h)",
        "t = Max(l, x) y = Min(h, t)",
        "t = Min(x, h) y = Max(t, l)",
        "t = Min(h, x) y = Max(l, t)",
    ],
)
def test_two_bounds_in_any_order_are_a_clip(nodes: str) -> None:
    assert_rewrites(PASS, f"(float[N,3] x) => (float[N,3] y) <{BOUNDS}> {{ {nodes} }}", CLIPPED)


def test_a_relu_is_a_bound_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float h = {6}> { t = Relu(x) y = Min(t, h) }",
        "(float[N,3] x) => (float[N,3] y) <float l = {0}, float h = {6}> { y = Clip(x, l, h) }",
    )


def test_bounds_of_one_element_become_numbers() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float[1] l = {-1}, float[1,1] h = {6}>"
        " { t = Max(x, l) y = Min(t, h) }",
        CLIPPED,
    )


def test_old_opsets_have_the_bounds_as_attributes() -> None:
    assert_rewrites(
        PASS,
        f"(float[2] x) => (float[2] y) <{BOUNDS}> {{ t = Max(x, l) y = Min(t, h) }}",
        "(float[2] x) => (float[2] y) { y = Clip<min=-1.0, max=6.0>(x) }",
        opset=10,
    )


def test_integers_are_clipped_where_the_opset_can() -> None:
    text = (
        "(int32[2] x) => (int32[2] y) <int32 l = {-1}, int32 h = {6}>"
        " { t = Max(x, l) y = Min(t, h) }"
    )
    assert_rewrites(
        PASS,
        text,
        "(int32[2] x) => (int32[2] y) <int32 l = {-1}, int32 h = {6}> { y = Clip(x, l, h) }",
    )


def test_one_bound_of_several_numbers_is_no_clip() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] l = {-1,0}, float h = {6}>"
        " { t = Max(x, l) y = Min(t, h) }",
        because="a bound is not one number",
    )


def test_a_bound_may_not_add_dims() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[1,2] y) <float[1,1] l = {-1}, float h = {6}>"
        " { t = Max(x, l) y = Min(t, h) }",
        because="a bound may give x more dims",
    )


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [("t = Max(x, l) y = Min(t, h)", 6), ("t = Min(x, h) y = Max(t, l)", 7)],
)
def test_of_bounds_that_exclude_each_other_the_outer_one_is_left(nodes: str, kept: int) -> None:
    bounds = "float l = {7}, float h = {6}"
    assert_rewrites(
        PASS,
        f"(float[2] x) => (float[2] y) <{bounds}> {{ {nodes} }}",
        f"(float[2] x) => (float[2] y) <float c = {{{kept}}}> {{ y = Clip(x, c, c) }}",
    )


def test_a_bound_below_the_minimum_of_a_relu_is_dropped() -> None:
    image = "(float[2] x) => (float[2] y) <float[1] h = {-2}>"
    assert_rewrites(
        PASS,
        f"{image} {{ t = Relu(x) y = Min(t, h) }}",
        "(float[2] x) => (float[2] y) <float h = {-2}> { y = Clip(x, h, h) }",
    )


@pytest.mark.parametrize(
    "bounds", ["float l = {nan}, float h = {6}", "float l = {1}, float h = {nan}"]
)
def test_a_bound_that_is_nan_is_none(bounds: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[2] x) => (float[2] y) <{bounds}> {{ t = Max(x, l) y = Min(t, h) }}",
        because="a bound is NaN",
    )


def test_a_bound_that_callers_feed_is_no_constant() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float l = {0}) => (float[2] y) <float h = {6}>"
        " { t = Max(x, l) y = Min(t, h) }",
    )


def test_without_a_dtype_nothing_is_known() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[2] x) => (float[2] y)'
        " <float l = {0}, float h = {6}> { u = d.Unknown(x) t = Max(u, l) y = Min(t, h) }",
        because="the dtype of x is not known",
    )


def test_a_result_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[2] x) => (float[2] y, float[2] t) <{BOUNDS}> {{ t = Max(x, l) y = Min(t, h) }}",
        because="an inner value is a graph output",
    )


def test_a_negative_zero_makes_it_more_than_exact() -> None:
    assert get_pass(PASS).info.numerics == "reassociating"


def test_doubles_stay_where_runtimes_have_no_kernel_for_them() -> None:
    image = "(double[2] x) => (double[2] y)"
    bounds = "double l = {0}, double h = {6}"
    text = f"{image} <{bounds}> {{ t = Max(x, l) y = Min(t, h) }}"
    assert_unchanged(PASS, text, opset=11, because="before opset 12 Clip has no kernel for doubles")
    assert_rewrites(PASS, text, f"{image} <{bounds}> {{ y = Clip(x, l, h) }}", opset=12)


def test_issue_40_a_bound_of_zero_stays_where_its_sign_is_read() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float l = {0}, float h = {6}>"
        " { a = Max(x, l) b = Min(a, h) y = Reciprocal(b) }",
        because="a consumer reads the sign of a zero",
    )
