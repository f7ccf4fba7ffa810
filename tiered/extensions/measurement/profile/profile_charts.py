"""Charts of a profile: layers and nodes as a flame chart, and the graph coloured by time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from tiered.extensions.measurement.profile.layers import text_of
from tiered.extensions.measurement.profile.model_profile import NodeTime, Profile
from tiered.support.amounts import counted
from tiered.support.pages.diagram import places_of
from tiered.support.pages.svg import svg_file, text

WIDTH: Final = 1200
ROW: Final = 22
_TOP: Final = 40
_NARROW: Final = 1.0
"""Boxes of fewer pixels are left out."""
_LETTER: Final = 6.2
"""The width of a letter, about."""
MOST_BLOCKS: Final = 150
_BOX: Final = 150
_HIGH: Final = 34


@dataclass
class _Frame:
    """A box of the flame chart, and those on it."""

    name: str
    seconds: float = 0.0
    above: dict[str, _Frame] = field(default_factory=dict)

    @property
    def depth(self) -> int:
        """How many rows it and those on it take."""
        return 1 + max((frame.depth for frame in self.above.values()), default=0)


def flame_svg(profile: Profile, title: str = "") -> str:
    """Return a chart: layers from bottom to top as their names have them, wide as their time."""
    root = _Frame("all nodes")
    for node in profile.nodes:
        frame = root
        frame.seconds += node.seconds
        for step in (*node.place.layer, node.op_type):
            frame = frame.above.setdefault(step, _Frame(step))
            frame.seconds += node.seconds
    height = _TOP + root.depth * ROW + 10
    total = root.seconds or 1.0
    lines = _frames(root, 0.0, height - ROW - 6, WIDTH / total, total)
    return svg_file(WIDTH, height, title or "layers by time", lines)


def _frames(frame: _Frame, left: float, top: float, scale: float, total: float) -> Iterator[str]:
    wide = frame.seconds * scale
    if wide < _NARROW:
        return
    shade = 0.25 + 0.75 * frame.seconds / total
    yield (
        f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{wide - 0.5:.1f}" '
        f'height="{ROW - 2}" fill-opacity="{shade * 0.45:.2f}"/>'
    )
    label = f"{frame.name} {frame.seconds * 1e3:.3g} ms ({frame.seconds / total:.0%})"
    letters = int((wide - 6) / _LETTER)
    if letters >= 3:
        shown = label[:letters]
        yield f'<text x="{left + 3:.1f}" y="{top + ROW - 8:.1f}">{text(shown)}</text>'
    for each in sorted(frame.above.values(), key=lambda other: (-other.seconds, other.name)):
        yield from _frames(each, left, top - ROW, scale, total)
        left += each.seconds * scale


class _Block(NamedTuple):
    """Nodes that are executed one after the other, drawn as one box."""

    name: str
    nodes: tuple[NodeTime, ...]

    @property
    def seconds(self) -> float:
        return sum(node.seconds for node in self.nodes)


def graph_svg(profile: Profile, title: str = "") -> str:
    """Return the graph: a box for each node, or for each layer of a large model."""
    blocks = _blocks(profile.nodes)
    owners = {
        name: at for at, block in enumerate(blocks) for node in block.nodes
        for name in node.place.outputs
    }  # fmt: skip
    edges = {
        (owners[name], at) for at, block in enumerate(blocks) for node in block.nodes
        for name in node.place.inputs if owners.get(name, at) < at
    }  # fmt: skip
    places = places_of(len(blocks), tuple(sorted(edges)))
    columns = 1 + max((column for _, column in places), default=0)
    rows = 1 + max((layer for layer, _ in places), default=0)
    width = max(400, columns * (_BOX + 20) + 20)
    height = _TOP + rows * (_HIGH + 24)
    lines = _boxes(blocks, places, sorted(edges), profile)
    return svg_file(width, height, title or "the graph by time", lines)


def _blocks(nodes: Sequence[NodeTime]) -> list[_Block]:
    """Return blocks of consecutive nodes, so that no edge goes back: few enough to be drawn."""
    if len(nodes) <= MOST_BLOCKS:
        return [_Block(node.op_type, (node,)) for node in nodes]
    deepest = max(len(node.place.layer) for node in nodes)
    for depth in range(deepest, 0, -1):
        paths = [node.place.layer[:depth] for node in nodes]
        starts = [0, *(at for at in range(1, len(nodes)) if paths[at] != paths[at - 1])]
        if len(starts) <= MOST_BLOCKS:
            return [
                _Block(text_of(paths[start]), tuple(nodes[start:end]))
                for start, end in pairwise([*starts, len(nodes)])
            ]
    ends = [len(nodes) * part // MOST_BLOCKS for part in range(MOST_BLOCKS + 1)]
    return [
        _Block(counted(end - start, "node"), tuple(nodes[start:end]))
        for start, end in pairwise(ends)
    ]


def _boxes(
    blocks: Sequence[_Block],
    places: Sequence[tuple[int, int]],
    edges: Sequence[tuple[int, int]],
    profile: Profile,
) -> Iterator[str]:
    corners = [(20 + column * (_BOX + 20), _TOP + layer * (_HIGH + 24)) for layer, column in places]
    for source, user in edges:
        (left, top), (to_left, to_top) = corners[source], corners[user]
        yield (
            f'<line class="edge" x1="{left + _BOX / 2:g}" y1="{top + _HIGH:g}" '
            f'x2="{to_left + _BOX / 2:g}" y2="{to_top:g}"/>'
        )
    most = max((block.seconds for block in blocks), default=0.0) or 1.0
    for block, (left, top) in zip(blocks, corners, strict=True):
        shade = 0.06 + 0.6 * block.seconds / most
        yield f'<rect class="back" x="{left}" y="{top}" width="{_BOX}" height="{_HIGH}"/>'
        yield (
            f'<rect class="bar" x="{left}" y="{top}" width="{_BOX}" height="{_HIGH}" rx="4" '
            f'fill-opacity="{shade:.2f}"/>'
        )
        letters = int(_BOX / _LETTER) - 1
        name = block.name if len(block.name) <= letters else f"…{block.name[1 - letters :]}"
        share = profile.share(block.seconds)
        yield f'<text x="{left + 5}" y="{top + 14}">{text(name)}</text>'
        yield (
            f'<text x="{left + 5}" y="{top + 28}">{block.seconds * 1e3:.3g} ms, {share:.1%}</text>'
        )
