import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_div_with_reciprocal"


@pytest.mark.parametrize(("divisor", "inverse"), [("3", "0.33333334"), ("-0.1", "-10")])
def test_it_multiplies_by_the_rounded_reciprocal(divisor: str, inverse: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) <float d = {{{divisor}}}> {{ y = Div(x, d) }}",
        f"(float[N] x) => (float[N] y) <float d = {{{inverse}}}> {{ y = Mul(x, d) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(int32[N] x) => (int32[N] y) <int32 d = {3}> { y = Div(x, d) }",
            "the dividend is not a float",
        ),
        (
            "(float[2] x) => (float[2] y, float[2] z) <float[2] d = {3,5}>"
            " { y = Div(x, d) z = Add(x, d) }",
            "the divisor is a shared tensor",
        ),
        *(
            (
                f"(float[N] x) => (float[N] y) <float d = {{{divisor}}}> {{ y = Div(x, d) }}",
                "a divisor or its reciprocal is 0, not normal or not finite",
            )
            for divisor in ("0", "1e-40", "3e38", "inf", "nan")
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
