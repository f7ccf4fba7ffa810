"""The verdict about a quantised model: by the ratio of its outputs on samples."""

from typing import Any

import numpy as np
import pytest

from tests.small import parsed
from tiered import Model
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.quantization.quantization_plan import QuantizationPlan
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.numerics.quantization.verified import verified_ratio
from tiered.support.errors import TargetError, VerificationError

TEXT = "(float[2] x) => (float[2] y) <float k = {1}> { y = Mul(x, k) }"
FEEDS = {"x": np.array([1, 2], np.float32)}


def verdict(factor: str, samples: int = 1, budget: str = "", text: str = TEXT) -> str:
    original = Model.from_proto(parsed(text).to_proto())
    changed = parsed(text.replace("k = {1}", f"k = {{{factor}}}"))
    unseen: Any = [FEEDS if "[2] x" in text else {"x": np.zeros(0, np.float32)}] * samples
    found = QuantizationResult(QuantizationPlan([], []), unseen=unseen)
    limit = budget_of(budget) if budget else None
    return str(verified_ratio(original.to_proto(), changed, found, limit))


def test_the_ratio_decides() -> None:
    assert verdict("1", 0) == "nothing to verify (nothing was quantised)"
    assert verdict("1.0625") == "yes (lossy, sqnr>=20; 1 set of inputs, sqnr 24.0824)"
    assert verdict("1.0625", 2) == "yes (lossy, sqnr>=20; 2 sets of inputs, sqnr 24.0824)"
    assert verdict("1.25", 1, "sqnr>=10dB") == (
        "yes (lossy, sqnr>=10; 1 set of inputs, sqnr 12.0412)"
    )


@pytest.mark.parametrize(
    ("budget", "end"),
    [
        ("", "promised: lossy (sqnr>=20); --budget states another promise"),
        ("sqnr>=15dB", "promised: lossy (sqnr>=15)"),
    ],
)
def test_a_promise_that_does_not_hold_is_an_error(budget: str, end: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verdict("1.25", 1, budget)
    assert str(caught.value) == f"quantize changed the outputs of the model: sqnr 12.0412, {end}"


def test_nothing_to_compare_is_no_verdict() -> None:
    with pytest.raises(TargetError, match="not verified: no output has an element to compare"):
        verdict("1", text=TEXT.replace("[2]", "[0]"))
