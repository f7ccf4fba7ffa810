from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_clip_empty_inputs"

LARGEST = "3.4028234663852886e38"


def test_an_absent_bound_is_the_furthest_finite_number() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float h = {6}> { y = Clip(x, , h) }",
        f"(float[N] x) => (float[N] y) <float l = {{-{LARGEST}}}, float h = {{6}}> {{ y = Clip(x, l, h) }}",
    )
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float l = {0}> { y = Clip(x, l) }",
        f"(float[N] x) => (float[N] y) <float l = {{0}}, float h = {{{LARGEST}}}> {{ y = Clip(x, l, h) }}",
    )


def test_each_dtype_has_its_own_limits() -> None:
    for dtype, low, high in (
        ("double", "-1.7976931348623157e308", "1.7976931348623157e308"),
        ("int8", "-128", "127"),
        ("int64", "-9223372036854775808", "9223372036854775807"),
        ("uint8", "0", "255"),
    ):
        assert_rewrites(
            PASS,
            f"({dtype}[N] x) => ({dtype}[N] y) {{ y = Clip(x) }}",
            f"({dtype}[N] x) => ({dtype}[N] y) <{dtype} l = {{{low}}}, {dtype} h = {{{high}}}> {{ y = Clip(x, l, h) }}",
        )


def test_bounds_that_are_there_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float l, float h) => (float[N] y) { y = Clip(x, l, h) }",
        because="both bounds are present",
    )


def test_attributes_have_defaults() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[N] y) { y = Clip<max=6.0>(x) }",
        because="before opset 11 the bounds are attributes with defaults",
        opset=10,
    )


def test_half_floats_reach_as_far_as_their_kernel() -> None:
    assert_unchanged(
        PASS,
        "(float16[N] x) => (float16[N] y) { y = Clip(x) }",
        because="16-bit floats may be clipped as float32",
    )


def test_an_unknown_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a) => (b) { b = Clip(a) }',
        because="the dtype of x is not known",
    )
