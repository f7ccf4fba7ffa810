import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_close, floats, run_both
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_layernorm"


def test_the_variance_is_that_of_differences() -> None:
    head = "(float[N,3] x, float[3] s, float[3] b) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = LayerNormalization<epsilon=1.0>(x, s, b) }}",
        f"{head} <int64[1] a = {{1}}, float e = {{1}}> {{ m = ReduceMean(x, a) "
        "d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) "
        "n = Div(d, r) t = Mul(n, s) y = Add(t, b) }",
    )


@pytest.mark.parametrize(("axis", "scale"), [(1, (3, 4)), (-1, (4,)), (0, (2, 3, 4))])
@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_axes_and_dtypes(axis: int, scale: tuple[int, ...], dtype: str) -> None:
    numpy = {"float": np.float32, "float16": np.float16, "double": np.float64}[dtype]
    shape = ",".join(map(str, scale))
    assert_close(
        PASS,
        f"({dtype}[N,3,4] x, {dtype}[{shape}] s) => ({dtype}[N,3,4] y) "
        f"{{ y = LayerNormalization<axis={axis}>(x, s) }}",
        {"x": floats(2, 3, 4).astype(numpy), "s": floats(*scale).astype(numpy)},
    )


def test_a_large_mean_does_not_cancel() -> None:
    """ONNX's body subtracts the square of the mean from the mean of the squares."""
    x = floats(1, 64) + np.float32(3e4)
    text = "(float[1,64] x, float[64] s) => (float[1,64] y) { y = LayerNormalization(x, s) }"
    _, after, _ = run_both(PASS, text, {"x": x, "s": np.ones(64, np.float32)})
    wide = x.astype(np.float64)
    expected = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-5)
    np.testing.assert_allclose(after["y"], expected, atol=3e-3)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[2,3] x, float[3] s) => (float[2,3] y, float[2,1] m) "
            "{ y, m = LayerNormalization(x, s) }",
            "mean or deviation is an output",
        ),
        (
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[2,3] x, float[3] s) => '
            "(float[2,3] y) { a = own.A(x) y = LayerNormalization(a, s) }",
            "the dtype or the rank of x is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
