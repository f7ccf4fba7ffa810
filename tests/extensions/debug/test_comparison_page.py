"""The cells of the table of outputs on the page of a comparison."""

from tiered.extensions.debug.comparison_page import OUTPUT, cells
from tiered.extensions.debug.models import OutputRow
from tiered.runtime.compare.tensors import OutputDifference


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
