"""What a result warns of."""

import pytest

from tests.small import made_by, parsed
from tiered.numerics.quantization.deployed import SATURATION
from tiered.numerics.quantization.quantization_plan import QuantizationPlan
from tiered.numerics.quantization.quantization_result import QuantizationResult

LOWER = "with onnxruntime's own optimisations the outputs have 30.0 dB"
NOT_RUN = "onnxruntime does not run the model with its own optimisations"


@pytest.mark.parametrize("has_returned", [False, True])
@pytest.mark.parametrize(
    ("sqnr", "deployed", "saturated", "expected"),
    [
        (None, None, False, ""),
        (None, 30.0, False, ""),
        (None, None, True, SATURATION),
        (40.0, None, True, NOT_RUN),
        (40.0, 30.0, False, LOWER),
        (40.0, 30.0, True, f"{LOWER}: {SATURATION}"),
        (40.0, 40.0, False, ""),
        (40.0, 40.0, True, None),
    ],
)
def test_a_warning_is_of_what_onnxruntime_itself_does(
    sqnr: float | None,
    deployed: float | None,
    saturated: bool,
    expected: str | None,
    has_returned: bool,
) -> None:
    node = made_by(parsed("(float[2] x) => (float[2] y) { y = Neg(x) }"), "y")
    found = QuantizationResult(
        QuantizationPlan([], []),
        sqnr=sqnr,
        deployed=deployed,
        is_saturated=saturated,
        returned=[(node, 1.0)] if has_returned else [],
    )
    if expected is None:
        expected = SATURATION if has_returned else ""
    assert found.warning == expected
