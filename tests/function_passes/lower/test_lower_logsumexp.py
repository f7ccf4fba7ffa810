import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_logsumexp"


def test_the_largest_is_subtracted() -> None:
    head = "(float[N,3] x) => (float[N,1] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64[1] a = {{1}}> {{ y = ReduceLogSumExp(x, a) }}",
        f"{head} <int64[1] a = {{1}}, float z = {{0}}> {{ m = ReduceMax(x, a) "
        "i = IsInf(m) k = Where(i, z, m) d = Sub(x, k) e = Exp(d) s = ReduceSum(e, a) "
        "l = Log(s) y = Add(l, k) }",
    )


@pytest.mark.parametrize("keepdims", [0, 1])
def test_large_and_infinite_numbers(keepdims: int) -> None:
    """The exponentials of ONNX's body would overflow in the first row."""
    shape = "[N,1]" if keepdims else "[N]"
    text = (
        f"(float[N,3] x) => (float{shape} y) <int64[1] a = {{-1}}> "
        f"{{ y = ReduceLogSumExp<keepdims={keepdims}>(x, a) }}"
    )
    rows = [[100, 200, 300], [-np.inf] * 3, [np.inf, 1, 2], [np.nan, 0, 0]]
    assert_equal(PASS, text, {"x": np.array(rows, np.float32)})


def test_all_axes() -> None:
    text = "(float[1,3] x) => (float y) { y = ReduceLogSumExp<keepdims=0>(x) }"
    assert_equal(PASS, text, {"x": np.array([[100, 0, 0]], np.float32)})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(int32[3] x) => (int32[1] y) { y = ReduceLogSumExp(x) }",
            "x is not known to be float or double",
        ),
        (
            "(float[3] x, int64[1] a) => (float[1] y) { y = ReduceLogSumExp(x, a) }",
            "the rank or the axes are not known",
        ),
        (
            "(float[3] x) => (float[3] y) { y = ReduceLogSumExp<noop_with_empty_axes=1>(x) }",
            "no axis is reduced",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
