import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_softmax"


def test_a_row_of_three_is_a_call() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }",
        '<ir_version: 10, opset_import: ["" : 21, "ai.graphcore" : 1]> g (float[2,3] x) => (float[2,3] y)'
        " { y = ai.graphcore.SoftmaxV2(x) }"
        ' <domain: "ai.graphcore", opset_import: ["" : 21]> SoftmaxV2 <axis>(a) => (b) { b = Softmax<axis: int = @axis>(a) }',
    )


def test_an_odd_size_is_a_call() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    x = np.array([[1, 2, 3], [-np.inf, np.nan, np.inf]], np.float32)
    assert assert_equal(PASS, text, {"x": x}) == ["SoftmaxV2"]


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[3,4] x) => (float[3,4] y) { y = Softmax(x) }", "the last dim is not known odd"),
        ("(float[3,N] x) => (float[3,N] y) { y = Softmax(x) }", "the last dim is not known odd"),
        ("(float[3,3] x) => (float[3,3] y) { y = Softmax<axis=0>(x) }", "the axis is not the last"),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_before_opset_13_it_normalises_all_dims_from_an_axis_on() -> None:
    """Softmax-11 of axis 1 is one row of 9 numbers here; that of the last axis is the same."""
    text = "(float[2,3,3] x) => (float[2,3,3] y) { y = Softmax<axis=1>(x) }"
    assert_unchanged(PASS, f'<ir_version: 10, opset_import: ["" : 11]> g {text}')
