import numpy as np
import pytest

from tests.analysis.legalization.compared import floats, run_both
from tests.function_passes.activation.test_fast_exp import CONSTANTS, exponential
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fast_softmax"


def test_it_is_the_quotient_of_exponentials() -> None:
    nodes = f"m = ReduceMax(x, axes)  d = Sub(x, m)  {exponential('d', 'e')}"
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }",
        f"(float[2,3] x) => (float[2,3] y) <int64[1] axes = {{-1}}, {CONSTANTS}>"
        f" {{ {nodes}  t = ReduceSum(e, axes)  y = Div(e, t) }}",
        runtime="none",
    )


@pytest.mark.parametrize("scale", [1, 20])
@pytest.mark.parametrize(
    ("opset", "axis"), [(9, 2), (12, 2), (12, -1), (13, 0), (13, 1), (21, 0), (21, 1), (21, -1)]
)
def test_its_error_is_as_documented(opset: int, axis: int, scale: int) -> None:
    text = f"(float[8,5,6] x) => (float[8,5,6] y) {{ y = Softmax<axis={axis}>(x) }}"
    x = floats(8, 5, 6) * np.float32(scale)
    before, after, operators = run_both(PASS, text, {"x": x}, opset=opset)
    assert not {"Exp", "Softmax"} & set(operators)
    assert np.abs(after["y"] - before["y"]).max() < 3e-6


def test_the_rank_may_be_unknown() -> None:
    text = "(float[N] x, int64[M] s) => (float y) { r = Reshape(x, s) y = Softmax(r) }"
    inputs = {"x": floats(6), "s": np.array([2, 3])}
    before, after, _ = run_both(PASS, text, inputs)
    np.testing.assert_allclose(after["y"], before["y"], atol=3e-6)


def test_several_dims_as_one_stay() -> None:
    text = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"
    assert_unchanged(PASS, text, opset=12)


def test_masked_elements_are_zero() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    x = np.array([[1, -np.inf, 2], [-3e38, 0, 80]], np.float32)  # e**-80 is a normal number
    before, after, _ = run_both(PASS, text, {"x": x})
    np.testing.assert_array_equal(after["y"] == 0, before["y"] == 0)
    np.testing.assert_allclose(after["y"], before["y"], atol=3e-6)


@pytest.mark.parametrize("row", [[np.nan, 0, 1], [np.inf, 0, 1], [-np.inf] * 3])
def test_a_row_without_a_softmax_is_nan(row: list[float]) -> None:
    text = "(float[1,3] x) => (float[1,3] y) { y = Softmax(x) }"
    before, after, _ = run_both(PASS, text, {"x": np.array([row], np.float32)})
    assert np.isnan(before["y"]).all()
    assert np.isnan(after["y"]).all()


def test_other_dtypes_stay() -> None:
    text = "(double[3] x) => (double[3] y) { y = Softmax(x) }"
    assert_unchanged(PASS, text, because="x is no float tensor")


def test_old_opsets_stay() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    assert_unchanged(PASS, text, because="the opset lacks Where", opset=8)
