import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_narrow_gemm"
CONSTANTS = "float[3,2] w = {1,2,3,4,5,6}, float[2] c = {7,8}"
NODES = "m = MatMul(x, w) y = Add(m, c)"
SUM = "m = MatMul(x, w) s = Add(m, c)"


@pytest.mark.parametrize(
    ("dims", "target"),
    [("N,5", "3] t = {-1,5,2}"), ("5,N", "3] t = {5,-1,2}"), ("2,4,5", "4] t = {2,4,5,2}")],
)
def test_rows_of_all_batches_are_one_matrix(dims: str, target: str) -> None:
    head = f"(float[{dims},3] x) => (float[M] y)"
    assert_rewrites(
        PASS,
        f"{head} <{CONSTANTS}, int64[1] u = {{-1}}> {{ {SUM} y = Reshape(s, u) }}",
        f"{head} <{CONSTANTS}, int64[1] u = {{-1}}, int64[2] r = {{-1,3}}, int64[{target}>"
        " { a = Reshape(x, r) g = Gemm(a, w, c) s = Reshape(g, t) y = Reshape(s, u) }",
    )


def test_the_reshape_may_stand_before_it() -> None:
    head = "(float[30] x, float[3,2] w) => (float[2,5,2] y)"
    assert_rewrites(
        PASS,
        f"{head} <float[2] c = {{7,8}}, int64[3] u = {{2,5,3}}>"
        " { h = Reshape(x, u) m = MatMul(h, w) y = Add(c, m) }",
        f"{head} <float[2] c = {{7,8}}, int64[3] u = {{2,5,3}}, int64[2] r = {{-1,3}},"
        " int64[3] t = {2,5,2}>"
        " { h = Reshape(x, u) a = Reshape(h, r) g = Gemm(a, w, c) y = Reshape(g, t) }",
    )


def test_a_reshape_that_follows_is_the_only_one() -> None:
    head = "(float[N,4,3] x) => (float[N,2,2,2] y)"
    assert_rewrites(
        "fuse_consecutive_reshape",
        f"{head} <{CONSTANTS}, int64[2] r = {{-1,3}}, int64[3] t = {{-1,4,2}},"
        " int64[4] u = {-1,2,2,2}>"
        " { a = Reshape(x, r) g = Gemm(a, w, c) h = Reshape(g, t) y = Reshape(h, u) }",
        f"{head} <{CONSTANTS}, int64[2] r = {{-1,3}}, int64[4] u = {{-1,2,2,2}}>"
        " { a = Reshape(x, r) g = Gemm(a, w, c) y = Reshape(g, u) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"(float[] x) => (float[] y) <{CONSTANTS}> {{ {NODES} }}",
            "the rank of x is not known",
        ),
        (
            f"(float[5,3] x) => (float[5,2] y) <{CONSTANTS}> {{ {NODES} }}",
            "a Gemm does not batch matrices",
        ),
        (
            "(double[2,5,3] x, double[3,2] w) => (double[2,5,2] y) <double[2] c = {7,8}>"
            f" {{ {NODES} }}",
            "it is not of float32",
        ),
        (
            "(float[2,5,3] x, float[2,3,2] w) => (float[2,5,2] y) <float[2] c = {7,8}>"
            f" {{ {NODES} }}",
            "the second factor is not a matrix of a known shape",
        ),
        (
            "(float[2,5,3] x, float[3,33] w, float[33] z) => (float[2,5,33] y) <float c = {7}>"
            f" {{ {NODES} }}",
            "with 33 columns the Reshapes cost more",
        ),
        (
            "(float[2,5,3] x, float[3,2] w) => (float[2,5,2] y) <float[1,2] c = {7,8}>"
            f" {{ {NODES} }}",
            "the addend is not per column",
        ),
        (
            f"(float[N,M,3] x) => (float[N,M,2] y) <{CONSTANTS}> {{ {NODES} }}",
            "the output shape has several unknown dims",
        ),
        (
            f"(float[N,0,3] x) => (float[N,0,2] y) <{CONSTANTS}> {{ {NODES} }}",
            "the output shape has several unknown dims",
        ),
        (
            f"(float[2,5,3] x) => (float[2,5,2] y, float[2,5,2] m) <{CONSTANTS}> {{ {NODES} }}",
            "an inner value is a graph output",
        ),
        (
            f"(float[2,5,3] x) => (float[2,5,2] y) <{CONSTANTS}> {{ {NODES} }}",
            "there is no Reshape before or after it",
        ),
        (
            f"(float[2,5,3] x) => (float[20] y) <{CONSTANTS}, int64[1] u = {{-1}}>"
            f" {{ {SUM} t = Relu(s) y = Reshape(t, u) }}",
            "there is no Reshape before or after it",
        ),
        (
            f"(float[2,5,3] x) => (float[2,10] y) <{CONSTANTS}, int64[2] u = {{0,-1}}>"
            f" {{ {SUM} y = Reshape(s, u) }}",
            "there is no Reshape before or after it",
        ),
        (
            f"(float[30] x) => (float[2,5,3] h, float[2,5,2] y) <{CONSTANTS},"
            f" int64[3] u = {{2,5,3}}> {{ h = Reshape(x, u) m = MatMul(h, w) y = Add(m, c) }}",
            "there is no Reshape before or after it",
        ),
    ],
)
def test_what_does_not_pay_or_cannot_be_said_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_bias_that_callers_may_feed_is_no_constant() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,5,3] x, float[3,2] w, float[2] c = {{7,8}}) => (float[2,5,2] y) {{ {NODES} }}",
    )
