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
    assert_unchanged(PASS, text, because="it is not of floats")


def test_what_others_read_stays() -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y, float[N,2] t) <float[2] a = {1,2}, float b = {3}>"
        " { t = Add(x, a) y = Add(t, b) }"
    )
    assert_unchanged(PASS, text)
