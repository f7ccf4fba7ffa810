"""Each combination of properties is legal or refused; each rounding has its law for halves."""

from itertools import product

import numpy as np
import pytest

from tests.recorded import assert_values
from tiered import UsageError
from tiered.compat.ppq.configs.policies import (
    QuantizationPolicy,
    QuantizationProperty as P,
    RoundingPolicy as R,
    rounded,
)

LEGAL = {
    scales + form + symmetry + power
    for scales, symmetry in product((P.PER_TENSOR, P.PER_CHANNEL), (P.SYMMETRICAL, P.ASYMMETRICAL))
    for form, power in ((P.LINEAR, 0), (P.LINEAR, P.POWER_OF_2), (P.EXPONENTIAL, 0))
}


def test_there_are_twelve_policies() -> None:
    assert len(LEGAL) == 12


@pytest.mark.parametrize("flags", range(129))
def test_a_policy_is_legal_or_refused(flags: int) -> None:
    if flags in LEGAL:
        found = QuantizationPolicy(flags)
        assert sum(P[name] for name, has in found.to_dict().items() if has) == flags
        assert found == QuantizationPolicy(flags)
    else:
        with pytest.raises(UsageError):
            QuantizationPolicy(flags)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (P.LINEAR + P.SYMMETRICAL, "one of PER_TENSOR and PER_CHANNEL; this one has neither"),
        (P.PER_TENSOR + P.PER_CHANNEL + P.LINEAR + P.SYMMETRICAL, "has both"),
        (P.PER_TENSOR + P.SYMMETRICAL, "one of LINEAR and EXPONENTIAL"),
        (P.PER_TENSOR + P.LINEAR, "one of SYMMETRICAL and ASYMMETRICAL"),
        (P.PER_TENSOR + P.EXPONENTIAL + P.SYMMETRICAL + P.POWER_OF_2, "POWER_OF_2"),
        (-1, "no property"),
    ],
)
def test_a_refusal_says_why(flags: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        QuantizationPolicy(flags)


@pytest.mark.parametrize(
    ("rounding", "expected"),
    [
        (R.ROUND_HALF_EVEN, [-2, -2, -0.0, 0, 2, 2, 1]),
        (R.ROUND_HALF_UP, [-2, -1, -0.0, 1, 2, 3, 1]),
        (R.ROUND_HALF_DOWN, [-3, -2, -1, 0, 1, 2, 1]),
        (R.ROUND_HALF_TOWARDS_ZERO, [-2, -1, -0.0, 0, 1, 2, 1]),
        (R.ROUND_HALF_FAR_FROM_ZERO, [-3, -2, -1, 1, 2, 3, 1]),
        (R.ROUND_UP, [-2, -1, -0.0, 1, 2, 3, 1]),
    ],
)
def test_halves_round_by_their_policy(rounding: R, expected: list[float]) -> None:
    numbers = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.75], np.float32)
    np.testing.assert_array_equal(rounded(numbers, rounding), expected)


@pytest.mark.parametrize("rounding", [each for each in R if each is not R.ROUND_UP])
def test_the_number_below_one_half_becomes_zero(rounding: R) -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert rounded(np.array([below]), rounding) == 0


def test_the_spelling_of_ppq_is_known() -> None:
    assert R["ROUND_HALF_FAR_FORM_ZERO"] is R.ROUND_HALF_FAR_FROM_ZERO


def test_policies_and_rounding_are_recorded() -> None:
    names = {
        "P": P,
        "policy": QuantizationPolicy,
        "R": R,
        "rounded": rounded,
        "numbers": np.array([0.5, -0.5, 1.5, -1.5, 2.4, -2.6, 0.49999997, 0.0], np.float32),
    }
    assert_values(__file__, names)
