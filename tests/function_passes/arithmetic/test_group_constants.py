import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "group_constants"
HEAD = "(float[N,2] x) => (float[N,2] y)"


@pytest.mark.parametrize(("kind", "together"), [("Add", "{4,5}"), ("Mul", "{3,6}")])
def test_constants_become_one(kind: str, together: str) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <float[2] a = {{1,2}}, float b = {{3}}> {{ t = {kind}(x, a) y = {kind}(b, t) }}",
        f"{HEAD} <float[2] c = {together}> {{ y = {kind}(x, c) }}",
    )


def test_integers_stay() -> None:
    text = (
        "(int32[N,2] x) => (int32[N,2] y) <int32[2] a = {1,2}, int32 b = {3}>"
        " { t = Add(x, a) y = Add(t, b) }"
    )
    assert_unchanged(PASS, text, because="the dtype is not a float")


def test_a_result_with_other_consumers_stays() -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y, float[N,2] t) <float[2] a = {1,2}, float b = {3}>"
        " { t = Add(x, a) y = Add(t, b) }"
    )
    assert_unchanged(PASS, text)


@pytest.mark.parametrize(
    ("kind", "dtype", "a", "b"),
    [
        ("Mul", "float", "{1e30,1e30}", "{1,1e30}"),
        ("Mul", "float", "{1e-30,1}", "{1e-30,1}"),
        ("Mul", "float16", "{300,1}", "{300}"),
        ("Add", "float", "{3e38,0}", "{3e38,0}"),
    ],
)
def test_constants_whose_sum_or_product_is_out_of_range_stay(
    kind: str, dtype: str, a: str, b: str
) -> None:
    head = HEAD.replace("float", dtype)
    constants = f"<{dtype}[2] a = {a}, {dtype}[{b.count(',') + 1}] b = {b}>"
    assert_unchanged(
        PASS,
        f"{head} {constants} {{ t = {kind}(x, a) y = {kind}(t, b) }}",
        because="together the constants overflow or become 0",
    )


@pytest.mark.parametrize(
    ("kind", "a", "b", "together"),
    [("Add", "{1,2}", "{-1,-2}", "{0,0}"), ("Mul", "{0,2}", "{1e30,0}", "{0,0}")],
)
def test_constants_that_are_0_together_without_having_lost_anything_become_one(
    kind: str, a: str, b: str, together: str
) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <float[2] a = {a}, float[2] b = {b}> {{ t = {kind}(x, a) y = {kind}(t, b) }}",
        f"{HEAD} <float[2] c = {together}> {{ y = {kind}(x, c) }}",
    )
