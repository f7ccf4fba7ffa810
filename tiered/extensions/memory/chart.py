"""The curve of a memory plan: as SVG, and as a line of blocks for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tiered.extensions.memory.liveness import MemoryPlan
from tiered.support.amounts import counted, size
from tiered.support.pages.charts import HEIGHT, WIDTH, Tick, line, x_at, y_at
from tiered.support.pages.svg import framed, named_point, svg_file, text

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
    count, top = max(len(plan.steps), 1), plan.peak or 1
    grid = range(0, top + 1, _tick(top))
    ticks = (Tick(y_at(nbytes / top), size(nbytes)) for nbytes in grid)
    yield from framed(title, ticks, f"{counted(len(plan.steps), 'node')} in the order of the file")
    corners = [(x_at(0, count), y_at(0))]
    for at, step in enumerate(plan.steps):
        y = y_at(step.nbytes / top)
        corners += [(x_at(at, count), y), (x_at(at + 1, count), y)]
    corners.append((x_at(len(plan.steps), count), y_at(0)))
    yield f'<polygon class="area" points="{line(corners)}"/>'
    if plan.steps:
        peak = plan.steps[plan.peak_at]
        x, y = x_at(plan.peak_at + 0.5, count), y_at(peak.nbytes / top)
        yield f'<circle class="bad" cx="{x}" cy="{y}" r="3.5"/>'
        yield named_point(x, y, f"{text(peak.node)} ({text(peak.op_type)}): {size(peak.nbytes)}")


def _tick(top: int) -> int:
    """Return the distance of the grid's lines: a power of two, so that there are at most seven."""
    return 1 << (top // 6).bit_length()
