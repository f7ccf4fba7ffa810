"""A chart of the error of each layer, as SVG."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

from tiered.debug.layers import Layer, LayerComparison

WIDTH, HEIGHT, MARGIN = 960, 360, 60
FLOOR, CEILING = -9.0, 3.0
"""The powers of ten between which errors are drawn."""

RIGHT, WRONG, LINE = "#2b6cb0", "#c53030", "#a0aec0"


def layers_svg(found: LayerComparison, title: str = "") -> str:
    """Return a chart: the layers from left to right, their largest error from bottom to top.

    What differs by more than is allowed is red; the first of these has its name beside it.
    """
    return "\n".join(_lines(found, title)) + "\n"


def _lines(found: LayerComparison, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    heading = html.escape(title or f"largest error of each layer, allowed: {found.numerics}")
    yield f'<text x="{MARGIN}" y="24" font-size="14">{heading}</text>'
    for power in range(int(FLOOR), int(CEILING) + 1, 3):
        y = _y(power)
        yield f'<line x1="{MARGIN}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="#edf2f7"/>'
        label = "0" if power == FLOOR else f"1e{power}"
        yield f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    last = max((layer.place for layer in found.layers), default=0)
    points = [(_x(layer.place, last), _y(_power(layer)), layer) for layer in found.layers]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    yield f'<polyline points="{path}" fill="none" stroke="{LINE}"/>'
    for x, y, layer in points:
        yield from _point(x, y, layer, is_first=layer is found.first_wrong)
    yield f'<text x="{WIDTH // 2}" y="{HEIGHT - 14}" text-anchor="middle">node</text>'
    yield "</svg>"


def _point(x: float, y: float, layer: Layer, *, is_first: bool) -> Iterator[str]:
    color = RIGHT if layer.ok else WRONG
    difference = layer.row.difference
    about = f"{layer.node} ({layer.op_type}): max abs {difference.max_abs:.1e}"
    if not layer.ok:
        about += f"; {difference.reason}"
    yield (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}">'
        f"<title>{html.escape(about)}</title></circle>"
    )
    if is_first:
        anchor = "end" if x > WIDTH / 2 else "start"
        shift = -8 if anchor == "end" else 8
        name = html.escape(layer.node)
        yield (
            f'<text x="{x + shift:.1f}" y="{y - 8:.1f}" text-anchor="{anchor}" '
            f'fill="{WRONG}">{name}</text>'
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
