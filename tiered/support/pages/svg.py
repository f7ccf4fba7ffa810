"""Charts as SVG files: the root element in two themes, and text that is safe in XML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Final

from tiered.support.pages.charts import HEIGHT, LEFT, RIGHT, WIDTH, Tick
from tiered.support.pages.render import short

LONGEST: Final = 90
"""Characters of a name in a chart."""

_STYLE: Final = (
    "text { fill: #1a202c } .soft { fill: #4a5568 } .bad { fill: #b02323 } .box { fill: #1a202c } "
    ".back { fill: #ffffff } .grid { stroke: #cbd5e0 } .curve { stroke: #1a56a8 } "
    ".bar { fill: #1a56a8 } .area { fill: #bee3f8; stroke: #1a56a8 } .edge { stroke: #718096 } "
    "@media (prefers-color-scheme: dark) { text { fill: #e8ecf2 } .soft { fill: #a9b4c4 } "
    ".bad { fill: #ff9d9d } .box { fill: #1a202c } .back { fill: #14181f } "
    ".grid { stroke: #3b4656 } .curve { stroke: #8ab8f5 } .bar { fill: #8ab8f5 } "
    ".area { fill: #2a4365; stroke: #8ab8f5 } }"
)
"""The colours of pages: `soft` for numbers, `bad` for what is wrong, `box` for text in a box."""


def svg_file(width: float, height: float, title: str, lines: Iterable[str]) -> str:
    """Return a file: it is as wide as its window at most, and has a light and a dark theme.

    Args:
        width, height: in pixels.
        title: the name for a screen reader.
        lines: the elements, in the classes of `_STYLE`.
    """
    name = text(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" style="max-width:100%;height:auto" role="img" '
        f'aria-label="{name}" font-family="system-ui, sans-serif" font-size="11">'
    )
    back = f'<rect class="back" width="{width:g}" height="{height:g}"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", back, *lines, "</svg>"]) + "\n"


def framed(title: str, ticks: Iterable[Tick], note: str) -> Iterator[str]:
    """Yield the title of a chart, its grid with labels, and the note below."""
    yield f'<text x="{LEFT}" y="16" font-size="14">{text(title)}</text>'
    for at, label in ticks:
        yield f'<line class="grid" x1="{LEFT}" y1="{at}" x2="{WIDTH - RIGHT}" y2="{at}"/>'
        yield (
            f'<text class="soft" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{label}</text>'
        )
    yield (
        f'<text class="soft" x="{WIDTH // 2}" y="{HEIGHT - 12}" text-anchor="middle">{note}</text>'
    )


def named_point(x: float, y: float, name: str) -> str:
    """Return the name of a point, on the side with room."""
    anchor, shift = ("end", -8) if x > WIDTH / 2 else ("start", 8)
    place = f'x="{x + shift:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}"'
    return f'<text class="bad" {place}>{name}</text>'


def text(value: str, longest: int = LONGEST) -> str:
    """Return text for an element or an attribute: visible, cut if it is long, and escaped."""
    return html.escape(short(value, longest))
