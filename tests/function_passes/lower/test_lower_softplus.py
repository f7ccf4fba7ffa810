import numpy as np

from tests.analysis.legalization.compared import assert_close, assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_softplus"


def test_the_exponent_is_not_positive() -> None:
    head = "(float[N] x) => (float[N] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Softplus(x) }}",
        f"{head} <float o = {{1}}> {{ r = Relu(x) a = Abs(x) n = Neg(a) e = Exp(n) s = Add(e, o) "
        "l = Log(s) y = Add(r, l) }",
    )


def test_large_numbers_do_not_overflow() -> None:
    """Log(1 + Exp(x)) of ONNX's body would be Inf for 100."""
    text = "(float[6] x) => (float[6] y) { y = Softplus(x) }"
    x = np.array([-100, -1, 0, 1, 100, 1e38], np.float32)
    assert_close(PASS, text, {"x": x})


def test_special_values() -> None:
    text = "(float[3] x) => (float[3] y) { y = Softplus(x) }"
    assert_equal(PASS, text, {"x": np.array([np.inf, -np.inf, np.nan], np.float32)})


def test_an_unknown_dtype_stays() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1] x) => (float[1] y) '
        "{ a = own.A(x) y = Softplus(a) }"
    )
    assert_unchanged(PASS, text, because="the dtype of x is not known")
