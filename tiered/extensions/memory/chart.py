"""The curve of a memory plan: as SVG, and as a line of blocks for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tiered.extensions.memory.plan import MemoryPlan
from tiered.support.amounts import counted, size
from tiered.support.pages.svg import svg_file, text

WIDTH: Final = 960
HEIGHT: Final = 320
MARGIN: Final = 70
BLOCKS: Final = "▁▂▃▄▅▆▇█"


def memory_svg(plan: MemoryPlan, title: str = "") -> str:
    """Return a chart: the nodes from left to right, the bytes alive from bottom to top."""
    title = title or "bytes of tensors alive at each node"
    return svg_file(WIDTH, HEIGHT, title, _lines(plan, title))


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
    yield f'<text x="{MARGIN}" y="24" font-size="14">{text(title)}</text>'
    count, top = max(len(plan.steps), 1), plan.peak or 1
    inner, base = WIDTH - MARGIN - 20, HEIGHT - 40

    def x(at: float) -> float:
        return MARGIN + inner * at / count

    def y(nbytes: int) -> float:
        return base - (base - 50) * nbytes / top

    for nbytes in range(0, top + 1, _tick(top)):
        yield (
            f'<line class="grid" x1="{MARGIN}" y1="{y(nbytes):.1f}" '
            f'x2="{WIDTH - 20}" y2="{y(nbytes):.1f}"/>'
        )
        yield (
            f'<text class="soft" x="{MARGIN - 8}" y="{y(nbytes) + 4:.1f}" '
            f'text-anchor="end">{size(nbytes)}</text>'
        )
    corners = [(x(0), y(0))]
    for at, step in enumerate(plan.steps):
        corners += [(x(at), y(step.nbytes)), (x(at + 1), y(step.nbytes))]
    corners.append((x(len(plan.steps)), y(0)))
    path = " ".join(f"{left:.1f},{up:.1f}" for left, up in corners)
    yield f'<polygon class="area" points="{path}"/>'
    if plan.steps:
        peak = plan.steps[plan.peak_at]
        where = x(plan.peak_at + 0.5)
        anchor = "end" if where > WIDTH / 2 else "start"
        name = f"{text(peak.node)} ({text(peak.op_type)}): {size(peak.nbytes)}"
        yield f'<circle class="bad" cx="{where:.1f}" cy="{y(peak.nbytes):.1f}" r="3.5"/>'
        yield (
            f'<text class="bad" x="{where:.1f}" y="{y(peak.nbytes) - 8:.1f}" '
            f'text-anchor="{anchor}">{name}</text>'
        )
    yield (
        f'<text class="soft" x="{WIDTH // 2}" y="{HEIGHT - 14}" text-anchor="middle">'
        f"{counted(len(plan.steps), 'node')} in the order of the file</text>"
    )


def _tick(top: int) -> int:
    """Return the distance of the grid's lines: a power of two, so that there are at most seven."""
    return 1 << (top // 6).bit_length()
