"""The coordinates of charts: places, shares, round ticks, and errors by powers of ten."""

import math
from xml.etree import ElementTree

import pytest

from tiered.support.pages.charts import (
    CEILING,
    FLOOR,
    HEIGHT,
    WIDTH,
    count_ticks,
    error_share,
    error_ticks,
    line,
    steps,
    x_at,
    y_at,
)


def test_places_are_between_the_margins() -> None:
    assert (WIDTH, HEIGHT) == (960, 260)
    assert [x_at(place, 4) for place in (0, 1, 2, 4)] == [72, 290, 508, 944]
    assert x_at(0, 0) == 508  # a single place is in the middle
    assert x_at(1, 3) == 362.7  # to a tenth


def test_shares_grow_upwards() -> None:
    assert [y_at(share) for share in (0, 0.5, 1)] == [224, 124, 24]
    assert y_at(1 / 3) == 157.3


@pytest.mark.parametrize(
    ("largest", "counts"),
    [
        (0, [0]), (1, [0, 1]), (3, [0, 1, 2, 3]), (5, [0, 1, 2, 3, 4, 5]), (6, [0, 2, 4, 6]),
        (9, [0, 2, 4, 6, 8]), (10, [0, 2, 4, 6, 8, 10]), (12, [0, 5, 10]),
        (25, [0, 5, 10, 15, 20, 25]),
        (26, [0, 10, 20]), (47, [0, 10, 20, 30, 40]), (60, [0, 20, 40, 60]),
        (100, [0, 20, 40, 60, 80, 100]), (3753, [0, 1000, 2000, 3000]),
        (29_001, [0, 10_000, 20_000]),
    ],
)  # fmt: skip
def test_ticks_are_round_and_few(largest: int, counts: list[int]) -> None:
    ticks = count_ticks(largest)
    assert [tick.label for tick in ticks] == [f"{count:,}" for count in counts]
    assert [tick.at for tick in ticks] == [y_at(count / max(largest, 1)) for count in counts]


@pytest.mark.parametrize(
    ("error", "share"),
    [
        (0.0, 0.0), (1e-30, 0.0), (1e-9, 0.0), (1e-3, 0.5), (1.0, 0.75), (1e3, 1.0), (1e9, 1.0),
        (math.nan, 1.0), (math.inf, 1.0), (-math.inf, 1.0),
    ],
)  # fmt: skip
def test_errors_are_drawn_by_powers_of_ten(error: float, share: float) -> None:
    assert error_share(error) == pytest.approx(share)
    assert error_share(error, is_comparable=False) == 1.0


def test_ticks_of_errors_are_at_their_shares() -> None:
    assert (FLOOR, CEILING) == (-9, 3)
    ticks = error_ticks()
    assert [tick.label for tick in ticks] == ["0", "1e-6", "1e-3", "1e0", "1e3"]
    assert [tick.at for tick in ticks] == [y_at(share) for share in (0, 0.25, 0.5, 0.75, 1)]


def test_lines_are_points_of_svg() -> None:
    assert line([]) == ""
    assert line([(1, 2), (3.5, 4.25)]) == "1,2 3.5,4.25"
    drawn = f'<polyline points="{line([(1.0, 2.0)])}"/>'
    assert ElementTree.fromstring(drawn).attrib["points"] == "1,2"


def test_steps_keep_their_height_until_the_next_point() -> None:
    assert steps([]) == ""
    assert steps([(1, 2)]) == "1,2"
    assert steps([(1, 2), (3, 5), (4, 0)]) == "1,2 3,2 3,5 4,5 4,0"
