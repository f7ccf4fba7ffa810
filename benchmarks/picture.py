"""The table of `peers` as a picture: one bar a tool, as an SVG that stands on its own."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT, _BAR, _STEP, _TOP = 760, 150, 190, 18, 28, 58


class Bar(NamedTuple):
    """One tool: the length of the bar, what stands beside it, and whether it is ours."""

    tool: str
    length: float
    text: str
    is_ours: bool


def picture(title: str, note: str, bars: Sequence[Bar]) -> str:
    """Return horizontal bars as SVG; it reads on a light page and on a dark one."""
    longest = max((bar.length for bar in bars), default=1.0) or 1.0
    height = _TOP + _STEP * len(bars) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text { font: 13px sans-serif; fill: #24292f }"
        " .title { font-weight: bold; font-size: 15px } .note { fill: #6e7781 }"
        " rect { fill: #afb8c1 } .ours { fill: #0969da }"
        " @media (prefers-color-scheme: dark) { text { fill: #e6edf3 }"
        " .note { fill: #8d96a0 } rect { fill: #484f58 } .ours { fill: #4493f8 } }</style>",
        f'<text class="title" x="8" y="20">{escape(title)}</text>',
        f'<text class="note" x="8" y="40">{escape(note)}</text>',
    ]
    for place, bar in enumerate(bars):
        y = _TOP + _STEP * place
        width = max(2.0, bar.length / longest * (_WIDTH - _LEFT - _RIGHT))
        kind = ' class="ours"' if bar.is_ours else ""
        middle = y + _BAR - 4
        parts += [
            f'<text x="{_LEFT - 8}" y="{middle}" text-anchor="end">{escape(bar.tool)}</text>',
            f'<rect{kind} x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{middle}">{escape(bar.text)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
