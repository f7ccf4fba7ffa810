"""The coordinates of charts; the templates draw them as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 960, 260
LEFT, RIGHT, TOP, BOTTOM = 72, 16, 24, 36
FLOOR, CEILING = -9, 3
"""The powers of ten between which errors are drawn."""


class Tick(NamedTuple):
    """A line of the grid with its label."""

    at: float
    label: str


class Point(NamedTuple):
    """A point of a chart; `about` describes it, `mark` is "", "wrong" or "first"."""

    x: float
    y: float
    about: str
    mark: str = ""


class Chart(NamedTuple):
    """A curve with its grid; `name` describes it for a screen reader."""

    name: str
    x_axis: str
    y_axis: str
    ticks: tuple[Tick, ...]
    points: tuple[Point, ...]
    path: str
    bands: tuple[tuple[float, float, str], ...] = ()


def x_at(place: float, last: float) -> float:
    """Return the x of a place from 0 to `last`."""
    share = place / last if last else 0.5
    return round(LEFT + (WIDTH - LEFT - RIGHT) * share, 1)


def y_at(share: float) -> float:
    """Return the y of a share, 0 at the bottom and 1 at the top."""
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)


def count_ticks(largest: int) -> tuple[Tick, ...]:
    """Return up to six ticks from 0 to the largest count, at round numbers."""
    step = 10 ** max(0, math.floor(math.log10(max(largest, 1))))
    finer = (part for part in (step // 5, step // 2) if part and largest / part <= 5)
    step = next(finer, step)
    while largest / step > 5:
        step *= 2
    return tuple(
        Tick(y_at(count / max(largest, 1)), f"{count:,}") for count in range(0, largest + 1, step)
    )


def error_share(error: float, *, is_comparable: bool = True) -> float:
    """Return the height of an error on a scale of powers of ten, 0 for none, 1 at the top."""
    if not is_comparable or not math.isfinite(error):
        return 1.0
    if not error:
        return 0.0
    power = min(CEILING, max(FLOOR, math.log10(error)))
    return (power - FLOOR) / (CEILING - FLOOR)


def error_ticks() -> tuple[Tick, ...]:
    """Return the ticks of the scale of `error_share`."""
    span = CEILING - FLOOR
    return tuple(
        Tick(y_at((power - FLOOR) / span), "0" if power == FLOOR else f"1e{power}")
        for power in range(FLOOR, CEILING + 1, 3)
    )


def line(points: Sequence[tuple[float, float]]) -> str:
    """Return the points of a polyline."""
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def steps(points: Sequence[tuple[float, float]]) -> str:
    """Return the points of a polyline that keeps each y until the next x."""
    path: list[tuple[float, float]] = []
    for x, y in points:
        if path:
            path.append((x, path[-1][1]))
        path.append((x, y))
    return line(path)
