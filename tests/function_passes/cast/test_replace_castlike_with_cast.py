from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_castlike_with_cast"


def test_the_dtype_is_named() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, int32[2] z) => (int32[N] y) { y = CastLike(x, z) }",
        "(float[N] x, int32[2] z) => (int32[N] y) { y = Cast<to=6>(x) }",
    )


def test_what_lent_the_dtype_may_go() -> None:
    assert_rewrites(
        PASS,
        "(int32[N] x, float[2] z) => (float[N] y) { h = Exp(z)  y = CastLike(x, h) }",
        "(int32[N] x, float[2] z) => (float[N] y) { y = Cast<to=1>(x) }",
    )


def test_saturation_is_kept() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, float8e4m3fn[2] z) => (float8e4m3fn[N] y) { y = CastLike<saturate=0>(x, z) }",
        "(float[N] x, float8e4m3fn[2] z) => (float8e4m3fn[N] y) { y = Cast<to=17, saturate=0>(x) }",
    )


def test_an_unknown_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x, float[2] z) => (float[2] y) { y = l.f(x, z) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a, b) => (c) { c = CastLike(a, b) }',
        because="the dtype of like is not known",
    )
