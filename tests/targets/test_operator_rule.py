"""The bounds of versions, ranks and attributes."""

import pytest

from tiered.targets.operator_rule import Bounds


@pytest.mark.parametrize(
    ("bounds", "number", "nearest"),
    [
        (Bounds(), 7, 7),
        (Bounds(9), 7, 9),
        (Bounds(9), 12, 12),
        (Bounds(None, 9), 12, 9),
        (Bounds(9, 13), 7, 9),
        (Bounds(9, 13), 11, 11),
        (Bounds(9, 13), 17, 13),
    ],
)
def test_the_nearest_number_is_within_the_bounds(bounds: Bounds, number: int, nearest: int) -> None:
    assert bounds.nearest(number) == nearest
    assert bounds.holds(nearest)
    assert bounds.holds(number) is (nearest == number)
