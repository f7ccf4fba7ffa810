import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_isinf"


def test_an_isinf_is_a_call() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (bool[2] y) { y = IsInf(x) }",
        '<ir_version: 10, opset_import: ["" : 21, "ai.graphcore" : 1]> g (float[2] x) => (bool[2] y)'
        " { y = ai.graphcore.IsInfV2(x) }"
        ' <domain: "ai.graphcore", opset_import: ["" : 21]> IsInfV2 <detect_negative, detect_positive>(a) => (b)'
        " { b = IsInf<detect_negative: int = @detect_negative, detect_positive: int = @detect_positive>(a) }",
    )


@pytest.mark.parametrize("signs", ["", "<detect_negative=0>", "<detect_positive=0>"])
def test_each_sign_is_found_as_before(signs: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0], np.float32)
    text = f"(float[4] x) => (bool[4] y) {{ y = IsInf{signs}(x) }}"
    assert assert_equal(PASS, text, {"x": x}) == ["IsInfV2"]


def test_an_old_file_has_no_functions() -> None:
    text = '<ir_version: 7, opset_import: ["" : 13]> g (float[2] x) => (bool[2] y) { y = IsInf(x) }'
    assert_unchanged(
        PASS, text, because="before IR 8 there are no local functions: tiered convert --ir 8"
    )
