from tiered.testing import assert_rewrites, assert_unchanged

HEAD = "(float[N,3] x) => (float[N,3] y)"


def test_an_alpha_scales_x_and_the_result() -> None:
    assert_rewrites(
        "replace_celu",
        f"{HEAD} {{ y = Celu<alpha=2.0>(x) }}",
        f"{HEAD} <float a = {{2}}> {{ d = Div(x, a) e = Elu(d) y = Mul(e, a) }}",
    )


def test_an_alpha_of_one_is_an_elu() -> None:
    assert_rewrites("replace_celu", f"{HEAD} {{ y = Celu(x) }}", f"{HEAD} {{ y = Elu(x) }}")


def test_an_alpha_of_zero_stays() -> None:
    assert_unchanged("replace_celu", f"{HEAD} {{ y = Celu<alpha=0.0>(x) }}", because="alpha is 0.0")


def test_an_unknown_dtype_stays() -> None:
    assert_unchanged(
        "replace_celu",
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        f"g {HEAD} {{ a = own.Any(x) y = Celu(a) }}",
        because="the dtype of x is not known",
    )
