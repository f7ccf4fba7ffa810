import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_cast"


@pytest.mark.parametrize("opset", [7, 13, 21])
def test_a_cast_to_its_own_dtype_goes(opset: int) -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) { h = Cast<to=1>(x) y = Relu(h) }",
        "(float[N] x) => (float[N] y) { y = Relu(x) }",
        opset=opset,
    )


def test_the_dtype_may_be_inferred() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (int64[1] y) { s = Shape(x) y = Cast<to=7>(s) }",
        "(float[N] x) => (int64[1] y) { y = Shape(x) }",
    )


def test_saturation_has_nothing_to_do() -> None:
    assert_rewrites(
        PASS,
        "(float[4] x) => (float[4] y)"
        " { a = Cast<to=19>(x) b = Cast<to=19, saturate=0>(a) y = Cast<to=1>(b) }",
        "(float[4] x) => (float[4] y) { a = Cast<to=19>(x) y = Cast<to=1>(a) }",
    )


def test_text_is_a_dtype_too() -> None:
    assert_rewrites(
        PASS,
        "(string[3] x) => (string[1,3] y) <int64[1] a = {0}>"
        " { h = Cast<to=8>(x) y = Unsqueeze(h, a) }",
        "(string[3] x) => (string[1,3] y) <int64[1] a = {0}> { y = Unsqueeze(x, a) }",
    )


def test_a_cast_like_something_of_the_same_dtype_goes_and_the_input_stays() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, float[2] like) => (float[N] y) { h = CastLike(x, like) y = Relu(h) }",
        "(float[N] x, float[2] like) => (float[N] y) { y = Relu(x) }",
        runtime="reference",
    )


def test_another_dtype_stays() -> None:
    for cast in ("Cast<to=10>(x)", "CastLike(x, z)"):
        assert_unchanged(
            PASS,
            f"(float[2] x, float16[1] z) => (float16[2] y) {{ y = {cast} }}",
            because="the dtype changes",
        )


def test_an_operand_of_an_unknown_operator_has_no_known_dtype() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { h = d.Mystery(x) y = Cast<to=1>(h) }",
        because="a dtype is not known",
    )


def test_a_dtype_that_the_call_of_a_function_decides_is_no_dtype() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[2] x) => (float[2] y) { y = d.f<t=1>(x) }"
        ' <domain: "d", opset_import: ["" : 21]> f <t> (a) => (b)'
        " { c = Constant<value_float=1.0>() b = Cast<to: int = @t>(c) }",
    )


def test_a_cast_that_saturates_infinities_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x) => (float[4] y)"
        " { a = Cast<to=19, saturate=0>(x) b = Cast<to=19>(a) y = Cast<to=1>(b) }",
        because="it makes infinities finite",
    )
