"""The page of a comparison: the cells of its tables, the chart of its layers, its whole text."""

import re

import pytest

from tests.support.pages.reader import read
from tiered.extensions.debug import comparison_page as page_module
from tiered.extensions.debug.comparison_page import OUTPUT, cells, comparison_page
from tiered.extensions.debug.layer_differences import Layer, LayerComparison
from tiered.extensions.debug.models import ModelComparison, OutputRow, Trial
from tiered.runtime.compare.tensors import OutputDifference
from tiered.support.numerics import Numerics


def test_the_numbers_of_a_tensor_are_in_the_order_of_the_columns() -> None:
    found = OutputDifference(
        "y", False, 0.5, 0.25, 1234567, 0.99, nan_mismatch=2, reason="2 NaNs differ"
    )
    row = OutputRow(found, "float32", (2, 3), 0.5, (2, 4))
    assert dict(zip(OUTPUT, cells(row), strict=True)) == {
        "type": "float32[2, 3]",
        "max abs": "5.0e-01",
        "max rel": "2.5e-01",
        "ULP": "1,234,567",
        "cosine": "0.990000",
        "argmax": "50.0%",
        "NaNs": "2 and 4, 2 differ",
        "verdict": "differs: 2 NaNs differ",
    }


def test_what_has_no_meaning_is_empty() -> None:
    row = OutputRow(OutputDifference("y", True))
    shown = dict(zip(OUTPUT, cells(row), strict=True))
    assert [name for name, cell in shown.items() if not cell] == [
        "type",
        "ULP",
        "cosine",
        "argmax",
        "NaNs",
    ]
    assert shown["verdict"] == "ok"


def test_a_scalar_has_an_empty_shape_and_equal_nans_are_only_counted() -> None:
    row = OutputRow(OutputDifference("y", True), "float16", (), nans=(1, 1))
    shown = dict(zip(OUTPUT, cells(row), strict=True))
    assert shown["type"] == "float16[]"
    assert shown["NaNs"] == "1 and 1"


GOOD = OutputRow(OutputDifference("y", True, 0.0, 0.0), "float32", (2,))
BAD = OutputRow(OutputDifference("z", False, 0.5, 0.25, reason="too far"), "float32", (2,))
ODD = OutputRow(OutputDifference("z", False, reason="is missing"))
COLUMNS = "type max abs max rel ULP cosine argmax NaNs verdict"


def layers(*rows: OutputRow, runs: int = 2) -> LayerComparison:
    found = tuple(
        Layer(2 * at, f"n{at}", "Neg", f"a{at}", f"b{at}", row) for at, row in enumerate(rows)
    )
    wrong = next((each for each in found if not each.ok), None)
    return LayerComparison(found, wrong, len(rows), runs, Numerics.EXACT)


def html_of(found: LayerComparison | None, *trials: Trial) -> str:
    return comparison_page("in/one.onnx", "two", ModelComparison(trials, Numerics.EXACT), found)


def shown(html: str) -> str:
    """Return the text of a page below its head."""
    return read(html).text.partition("Summary The comparison ")[2]


def test_the_page_has_the_outputs_and_the_layers() -> None:
    html = html_of(layers(GOOD, BAD, ODD), Trial((GOOD, BAD), {"n": 2, "m": 3}, {}))
    assert shown(html) == (
        "first model one.onnx second model two verdict the models differ allowed difference exact "
        "runtime onnxruntime first layer that differs Neg n1: too far "
        f"Outputs Inputs 1 of 1 (n=2, m=3) output {COLUMNS} "
        "y float32[2] 0.0e+00 0.0e+00 ok z float32[2] 5.0e-01 2.5e-01 differs: too far "
        "Layers In the chart the first that differs is n1. "
        "Largest error of each layer, allowed: exact; the first that differs is n1 "
        "0 1e-6 1e-3 1e0 1e3 n0 (Neg): max abs 0.0e+00 n1 (Neg): max abs 5.0e-01 "
        "n1 (Neg): max abs 5.0e-01 n2 (Neg): max abs 0.0e+00 "
        "nodes in the order of the second model max abs 3 of 3 layers, in 2 runs "
        f"place node operator value {COLUMNS} 0 n0 Neg b0 float32[2] 0.0e+00 0.0e+00 ok "
        "2 n1 Neg b1 float32[2] 5.0e-01 2.5e-01 differs: too far "
        "4 n2 Neg b2 0.0e+00 0.0e+00 differs: is missing"
    )
    assert re.findall(r'<circle class="point (\w*)" cx="(\S+)" cy="(\S+)"', html) == [
        ("", "72.0", "224.0"), ("first", "508.0", "79.0"), ("wrong", "944.0", "24.0")
    ]  # fmt: skip
    assert '<polyline class="curve" points="72,224 508,79 944,24"/>' in html


def test_the_page_of_models_that_agree() -> None:
    text = shown(html_of(layers(GOOD, runs=1), Trial((GOOD,), {}, {})))
    head = "first model one.onnx second model two verdict the models agree allowed difference exact"
    assert text == (
        f"{head} runtime onnxruntime first layer that differs none "
        f"Outputs Inputs 1 of 1 output {COLUMNS} y float32[2] 0.0e+00 0.0e+00 ok "
        "Layers Largest error of each layer, allowed: exact; no layer differs "
        "0 1e-6 1e-3 1e0 1e3 n0 (Neg): max abs 0.0e+00 "
        "nodes in the order of the second model max abs 1 of 1 layer, in 1 run "
        f"place node operator value {COLUMNS} 0 n0 Neg b0 float32[2] 0.0e+00 0.0e+00 ok"
    )
    assert shown(html_of(None)) == f"{head} runtime onnxruntime Outputs"
    assert '<polyline class="curve" points=""/>' in html_of(layers())


def test_the_first_layers_of_a_large_model_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "MOST_LAYERS", 2)
    note = "The first 2 of 3 layers are shown."
    html = html_of(layers(GOOD, GOOD, BAD))
    assert f"In the chart the first that differs is n2. {note} Largest" in shown(html)
    assert html.count("<circle") == 2
    assert "layers are shown" not in shown(html_of(layers(GOOD, GOOD)))
