"""A chart of the error of each layer, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tiered.extensions.debug.layers import Layer, LayerComparison
from tiered.support.pages.svg import svg_file, text

WIDTH, HEIGHT, MARGIN = 960, 360, 60
FLOOR, CEILING = -9.0, 3.0
"""The powers of ten between which errors are drawn."""


def layers_svg(found: LayerComparison, title: str = "") -> str:
    """Return a chart: the layers from left to right, their largest error from bottom to top.

    What differs by more than is allowed is red; the first of these has its name beside it.
    """
    title = title or f"largest error of each layer, allowed: {found.numerics}"
    return svg_file(WIDTH, HEIGHT, title, _lines(found, title))


def _lines(found: LayerComparison, title: str) -> Iterator[str]:
    yield f'<text x="{MARGIN}" y="24" font-size="14">{text(title)}</text>'
    for power in range(int(FLOOR), int(CEILING) + 1, 3):
        y = _y(power)
        yield f'<line class="grid" x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}"/>'
        label = "0" if power == FLOOR else f"1e{power}"
        yield (
            f'<text class="soft" x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
    last = max((layer.place for layer in found.layers), default=0)
    points = [(_x(layer.place, last), _y(_power(layer)), layer) for layer in found.layers]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    yield f'<polyline class="curve" points="{path}" fill="none"/>'
    for x, y, layer in points:
        yield from _point(x, y, layer, is_first=layer is found.first_wrong)
    yield (
        f'<text class="soft" x="{WIDTH // 2}" y="{HEIGHT - 14}" text-anchor="middle">'
        "nodes in the order of the second model</text>"
    )


def _point(x: float, y: float, layer: Layer, *, is_first: bool) -> Iterator[str]:
    difference = layer.row.difference
    about = f"{text(layer.node)} ({text(layer.op_type)}): max abs {difference.max_abs:.1e}"
    if not layer.ok:
        about += f"; {text(difference.reason)}"
    yield (
        f'<circle class="{"bar" if layer.ok else "bad"}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
        f"<title>{about}</title></circle>"
    )
    if is_first:
        anchor = "end" if x > WIDTH / 2 else "start"
        shift = -8 if anchor == "end" else 8
        yield (
            f'<text class="bad" x="{x + shift:.1f}" y="{y - 8:.1f}" '
            f'text-anchor="{anchor}">{text(layer.node)}</text>'
        )


def _power(layer: Layer) -> float:
    """Return the power of ten of the largest error; above the scale if it is not comparable."""
    difference = layer.row.difference
    if not layer.ok and not difference.max_abs:
        return CEILING
    if not difference.max_abs:
        return FLOOR
    if not math.isfinite(difference.max_abs):
        return CEILING
    return min(CEILING, max(FLOOR, math.log10(difference.max_abs)))


def _x(place: int, last: int) -> float:
    return MARGIN + (WIDTH - MARGIN - 20) * (place / last if last else 0.5)


def _y(power: float) -> float:
    return HEIGHT - 40 - (HEIGHT - 90) * (power - FLOOR) / (CEILING - FLOOR)
