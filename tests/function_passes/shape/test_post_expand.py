import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "post_expand"


@pytest.mark.parametrize(
    "op", ["Relu", "Sigmoid", "Tanh", "Exp", "Neg", "LeakyRelu<alpha=0.5>", "Erf"]
)
def test_an_elementwise_operator_is_computed_before_the_expand(op: str) -> None:
    interface = "(float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}>"
    assert_rewrites(
        PASS,
        f"{interface} {{ a = Expand(x, s) y = {op}(a) }}",
        f"{interface} {{ a = {op}(x) y = Expand(a, s) }}",
    )


def test_the_shape_may_be_computed() -> None:
    interface = "(float[1,3] x, int64[2] s) => (float[a,b] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ a = Expand(x, s) y = Cast<to=7>(a) }}".replace("float[a,b]", "int64[a,b]"),
        f"{interface} {{ a = Cast<to=7>(x) y = Expand(a, s) }}".replace("float[a,b]", "int64[a,b]"),
    )


def test_operators_along_an_axis_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}>"
        " { a = Expand(x, s) y = Softmax<axis=0>(a) }",
    )


def test_an_expansion_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[2,3] y, float[2,3] a) <int64[2] s = {2,3}>"
        " { a = Expand(x, s) y = Relu(a) }",
        because="an inner value is a graph output",
    )


@pytest.mark.parametrize(
    ("dtype", "number"), [("float8e4m3fn", 17), ("float8e5m2", 19), ("uint4", 21), ("int4", 22)]
)
def test_a_cast_to_a_dtype_unsupported_by_expand_stays(dtype: str, number: int) -> None:
    assert_unchanged(
        PASS,
        f"(float[4] x) => ({dtype}[3,4] y) <int64[2] s = {{3,4}}>"
        f" {{ e = Expand(x, s) y = Cast<to={number}>(e) }}",
        because="Expand does not support the dtype",
    )


def test_an_output_of_unknown_dtype_stays() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (x) => (y) <int64[2] s = {2,3}> { t = local.f(x) a = Expand(t, s) y = Neg(a) }""",
        because="Expand does not support the dtype",
    )
