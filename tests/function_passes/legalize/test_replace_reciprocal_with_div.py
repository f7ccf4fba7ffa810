from tiered.testing import assert_rewrites, assert_unchanged


def test_one_is_divided_by_x() -> None:
    assert_rewrites(
        "replace_reciprocal_with_div",
        "(float[N,3] x) => (float[N,3] y) { y = Reciprocal(x) }",
        "(float[N,3] x) => (float[N,3] y) <float one = {1}> { y = Div(one, x) }",
    )


def test_a_double_keeps_its_dtype() -> None:
    assert_rewrites(
        "replace_reciprocal_with_div",
        "(double[37] x) => (double[37] y) { y = Reciprocal(x) }",
        "(double[37] x) => (double[37] y) <double one = {1}> { y = Div(one, x) }",
    )


def test_an_unknown_dtype_stays() -> None:
    assert_unchanged(
        "replace_reciprocal_with_div",
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (float[2] x) => (float[2] y) { a = own.Any(x) y = Reciprocal(a) }",
        because="the dtype of x is not known",
    )
