"""The curve of a memory plan: as SVG, and as a line of blocks for a terminal."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import Final

from tiered.memory.plan import MemoryPlan

WIDTH: Final = 960
HEIGHT: Final = 320
MARGIN: Final = 70
BLOCKS: Final = "▁▂▃▄▅▆▇█"


def memory_svg(plan: MemoryPlan, title: str = "") -> str:
    """Return a chart: the nodes from left to right, the bytes alive from bottom to top."""
    return "\n".join(_lines(plan, title)) + "\n"


def memory_line(plan: MemoryPlan, width: int = 60) -> str:
    """Return the curve as blocks; each column is the largest of its nodes."""
    sizes = [step.nbytes for step in plan.steps]
    columns = list(_columns(sizes, width))
    top = max(columns, default=0) or 1
    return "".join(BLOCKS[round(each / top * (len(BLOCKS) - 1))] for each in columns)


def _columns(sizes: Sequence[int], width: int) -> Iterator[int]:
    """Yield the largest of each of at most `width` parts of about equal length."""
    count = min(width, len(sizes))
    for at in range(count):
        yield max(sizes[at * len(sizes) // count : (at + 1) * len(sizes) // count])


def _lines(plan: MemoryPlan, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    heading = html.escape(title or "bytes of tensors alive at each node")
    yield f'<text x="{MARGIN}" y="24" font-size="14">{heading}</text>'
    count, top = max(len(plan.steps), 1), plan.peak or 1
    inner, base = WIDTH - MARGIN - 20, HEIGHT - 40

    def x(at: float) -> float:
        return MARGIN + inner * at / count

    def y(nbytes: int) -> float:
        return base - (base - 50) * nbytes / top

    for part in range(5):
        nbytes = top * part // 4
        yield (
            f'<line x1="{MARGIN}" y1="{y(nbytes):.1f}" x2="{WIDTH - 20}" y2="{y(nbytes):.1f}" '
            'stroke="#edf2f7"/>'
        )
        yield f'<text x="{MARGIN - 8}" y="{y(nbytes) + 4:.1f}" text-anchor="end">{nbytes:,}</text>'
    corners = [(x(0), y(0))]
    for at, step in enumerate(plan.steps):
        corners += [(x(at), y(step.nbytes)), (x(at + 1), y(step.nbytes))]
    corners.append((x(len(plan.steps)), y(0)))
    path = " ".join(f"{left:.1f},{up:.1f}" for left, up in corners)
    yield f'<polygon points="{path}" fill="#bee3f8" stroke="#2b6cb0"/>'
    if plan.steps:
        peak = plan.steps[plan.peak_at]
        where = x(plan.peak_at + 0.5)
        anchor = "end" if where > WIDTH / 2 else "start"
        name = html.escape(f"{peak.node} ({peak.op_type}): {peak.nbytes:,} bytes")
        yield f'<circle cx="{where:.1f}" cy="{y(peak.nbytes):.1f}" r="3.5" fill="#c53030"/>'
        yield (
            f'<text x="{where:.1f}" y="{y(peak.nbytes) - 8:.1f}" text-anchor="{anchor}" '
            f'fill="#c53030">{name}</text>'
        )
    yield f'<text x="{WIDTH // 2}" y="{HEIGHT - 14}" text-anchor="middle">node</text>'
    yield "</svg>"
