import numpy as np

from tests.analysis.legalization.compared import assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_round"


def test_a_round_is_a_call() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { y = Round(x) }",
        '<ir_version: 10, opset_import: ["" : 21, "ai.graphcore" : 1]> g (float[2] x) => (float[2] y)'
        " { y = ai.graphcore.RoundV2(x) }"
        ' <domain: "ai.graphcore", opset_import: ["" : 21]> RoundV2 (a) => (b) { b = Round(a) }',
    )


def test_halves_go_to_even_numbers_as_before() -> None:
    x = np.array([0.5, 1.5, -0.5, -2.5, -0.0, np.nan, np.inf], np.float32)
    text = "(float[7] x) => (float[7] y) { y = Round(x) }"
    assert assert_equal(PASS, text, {"x": x}) == ["RoundV2"]


def test_an_old_file_has_no_functions() -> None:
    text = (
        '<ir_version: 7, opset_import: ["" : 13]> g (float[2] x) => (float[2] y) { y = Round(x) }'
    )
    assert_unchanged(
        PASS, text, because="before IR 8 there are no local functions: tiered convert --ir 8"
    )
