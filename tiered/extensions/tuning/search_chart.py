"""The chart of a search: the ratio of each form and decision, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tiered.extensions.tuning.found import Tried
from tiered.extensions.tuning.tuning_result import Tuned
from tiered.support.pages.svg import svg_file, text

WIDTH: Final = 1200
_ROW: Final = 20
_TOP: Final = 40
_LEFT: Final = 520
_RIGHT: Final = 130
_LEAST: Final = 0.05
"""The scale shows at least this much to both sides, as a logarithm."""


def search_svg(tuned: Tuned, title: str = "") -> str:
    """Return a chart: a row for each form and decision that was measured, in order."""
    rows = [each for each in tuned.tried if each.gain is not None]
    height = _TOP + _ROW * max(1, len(rows)) + 20
    return svg_file(WIDTH, height, title or "the search", _lines(rows, height))


def _lines(rows: Sequence[Tried], height: int) -> Iterator[str]:
    logs = [abs(math.log(each.gain.ratio.median)) for each in rows if each.gain]
    reach = max([_LEAST, *logs]) * 1.2

    def x(ratio: float) -> float:
        share = (math.log(ratio) / reach + 1) / 2
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, share))

    yield (
        f'<line class="grid" x1="{x(1):.1f}" y1="{_TOP - 12}" x2="{x(1):.1f}" y2="{height - 16}"/>'
    )
    yield f'<text class="soft" x="{x(1):.1f}" y="{_TOP - 18}" text-anchor="middle">1</text>'
    for end in (math.exp(-reach), math.exp(reach)):
        yield (
            f'<text class="soft" x="{x(end):.1f}" y="{_TOP - 18}" text-anchor="middle">'
            f"{end:.2f}</text>"
        )
    for place, each in enumerate(rows):
        yield from _row(each, _TOP + place * _ROW + 10, x)


def _row(each: Tried, y: int, x: Callable[[float], float]) -> Iterator[str]:
    gain = each.gain
    if gain is None:
        return
    kind = "curve" if each.is_taken else "edge"
    yield f'<text x="8" y="{y + 4}">{text(f"{each.stage}: {each.text}", 76)}</text>'
    yield (
        f'<line class="{kind}" stroke-width="{3 if each.is_taken else 1.5}" '
        f'x1="{x(gain.ratio.low):.1f}" y1="{y}" x2="{x(gain.ratio.high):.1f}" y2="{y}"/>'
    )
    yield f'<circle class="bar" cx="{x(gain.ratio.median):.1f}" cy="{y}" r="3"/>'
    yield (
        f'<text class="soft" x="{WIDTH - _RIGHT + 8}" y="{y + 4}">{gain.ratio.median:.3f}'
        f"{', taken' if each.is_taken else ''}</text>"
    )
