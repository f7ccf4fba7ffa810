import pytest

from tiered.testing import assert_rewrites, assert_unchanged


@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64"])
def test_minus_one_times_x(dtype: str) -> None:
    assert_rewrites(
        "replace_neg_with_mul",
        f"({dtype}[N,3] x) => ({dtype}[N,3] y) {{ y = Neg(x) }}",
        f"({dtype}[N,3] x) => ({dtype}[N,3] y) <{dtype} m = {{-1}}> {{ y = Mul(x, m) }}",
    )


def test_an_unknown_dtype_stays() -> None:
    assert_unchanged(
        "replace_neg_with_mul",
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (float[2] x) => (float[2] y) { a = own.Any(x) y = Neg(a) }",
        because="the dtype of x is not known",
    )
