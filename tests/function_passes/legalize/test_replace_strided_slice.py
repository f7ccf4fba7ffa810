import pytest

from tiered import get_backend, optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_strided_slice"


def test_one_of_each_pair_is_taken_from_an_axis_of_pairs() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,8] x) => (float[2,3,4] y)"
        " <int64[1] s = {1}, int64[1] e = {8}, int64[1] a = {-1}, int64[1] t = {2}>"
        " { y = Slice(x, s, e, a, t) }",
        "(float[2,3,8] x) => (float[2,3,4] y)"
        " <int64[3] p = {24,2,1}, int64[1] s = {1}, int64[1] e = {2}, int64[1] a = {1}, int64[3] o = {2,3,4}>"
        " { f = Reshape(x, p)  c = Slice(f, s, e, a)  y = Reshape(c, o) }",
    )


def test_any_axis_and_step() -> None:
    assert_rewrites(
        PASS,
        "(int32[6,2] x) => (int32[2,2] y)"
        " <int64[1] s = {-6}, int64[1] e = {100}, int64[1] a = {0}, int64[1] t = {3}>"
        " { y = Slice(x, s, e, a, t) }",
        "(int32[6,2] x) => (int32[2,2] y)"
        " <int64[3] p = {2,3,2}, int64[1] s = {0}, int64[1] e = {1}, int64[1] a = {1}, int64[2] o = {2,2}>"
        " { f = Reshape(x, p)  c = Slice(f, s, e, a)  y = Reshape(c, o) }",
    )


def test_several_axes_are_cut_one_after_the_other() -> None:
    assert_rewrites(
        PASS,
        "(float[4,6] x) => (float[2,2] y)"
        " <int64[2] s = {1,2}, int64[2] e = {4,6}, int64[2] a = {0,1}, int64[2] t = {2,3}>"
        " { y = Slice(x, s, e, a, t) }",
        "(float[4,6] x) => (float[2,2] y)"
        " <int64[3] p = {2,2,6}, int64[1] b = {1}, int64[1] c = {2}, int64[1] d = {1}, int64[2] o = {2,6},"
        " int64[3] q = {4,3,1}, int64[1] e = {2}, int64[1] f = {3}, int64[1] g = {1}, int64[2] r = {2,2}>"
        " { f1 = Reshape(x, p)  c1 = Slice(f1, b, c, d)  m = Reshape(c1, o)"
        "   f2 = Reshape(m, q)  c2 = Slice(f2, e, f, g)  y = Reshape(c2, r) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[N,8] x) => (float[N,4] y) <int64[1] s = {0}, int64[1] e = {8}, int64[1] a = {1}, int64[1] t = {2}>"
            " { y = Slice(x, s, e, a, t) }",
            "the shape is not known, or has no elements",
        ),
        (
            "(float[8] x, int64[1] s) => (float[4] y) <int64[1] e = {8}, int64[1] a = {0}, int64[1] t = {2}>"
            " { y = Slice(x, s, e, a, t) }",
            "starts, axes or steps is not a constant",
        ),
        (
            "(float[7] x) => (float[4] y) <int64[1] s = {0}, int64[1] e = {7}, int64[1] a = {0}, int64[1] t = {2}>"
            " { y = Slice(x, s, e, a, t) }",
            "it does not take one of each 2 neighbours",
        ),
        (
            "(float[8] x) => (float[3] y) <int64[1] s = {0}, int64[1] e = {6}, int64[1] a = {0}, int64[1] t = {2}>"
            " { y = Slice(x, s, e, a, t) }",
            "it does not take one of each 2 neighbours",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_neighbouring_pixels_on_a_target_without_strided_slices() -> None:
    text = """(float[1,3,8,8] x) => (float[1,3,4,4] y) <float w = {2}, int64[1] s = {1}, int64[1] z = {0}, int64[1] e = {8},
        int64[1] a = {2}, int64[1] b = {3}, int64[1] t = {2}> {
        m = Mul(x, w)  r = Slice(m, s, e, a, t)  y = Slice(r, z, e, b, t) }"""
    result = optimize_model(parse(text), backend="int8_npu", opt_level=3, required=["quantize"])
    assert get_backend("int8_npu").coverage(result.model).is_met
