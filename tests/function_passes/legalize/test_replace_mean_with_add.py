from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_mean_with_add"


def test_a_mean_is_a_sum_divided() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x, float[3] z) => (float[N,3] y) { y = Mean(x, z, z) }",
        "(float[N,3] x, float[3] z) => (float[N,3] y) <float c = {3}> "
        "{ a = Add(x, z)  b = Add(a, z)  y = Div(b, c) }",
    )


def test_a_mean_of_one_is_divided_by_one() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) { y = Mean(x) }",
        "(float[3] x) => (float[3] y) <float c = {1}> { y = Div(x, c) }",
    )


def test_an_unknown_dtype_stays() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[3] x) => (float[3] y) '
    text += "{ a = own.Any(x) y = Mean(a, x) }"
    assert_unchanged(PASS, text, because="the dtype of x is not known")
