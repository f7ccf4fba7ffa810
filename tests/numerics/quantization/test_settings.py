"""What a caller chooses of a quantisation is in its range."""

import pytest

from tiered.numerics.quantization.settings import QuantizationSettings
from tiered.support.errors import UsageError


@pytest.mark.parametrize("percentile", [0.0, -1.0, 100.5])
def test_a_percentile_is_above_0_and_at_most_100(percentile: float) -> None:
    with pytest.raises(UsageError, match=f"percentile is {percentile:g}; expected above 0"):
        QuantizationSettings(percentile=percentile)
    assert QuantizationSettings(percentile=0.5).percentile == 0.5
    assert QuantizationSettings(percentile=100).percentile == 100


def test_there_is_a_sample() -> None:
    with pytest.raises(UsageError, match="samples is 0; expected at least 1"):
        QuantizationSettings(samples=0)
    assert QuantizationSettings(samples=1).samples == 1
