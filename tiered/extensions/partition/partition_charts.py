"""Charts of partitions: as DOT for Graphviz, and as SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tiered.extensions.partition.contraction import grouped, order_of_groups
from tiered.extensions.partition.partition_report import report_of
from tiered.extensions.partition.partitioner import Partition
from tiered.extensions.partition.separate import HOST
from tiered.graph import Model, Node
from tiered.support.amounts import counted
from tiered.support.pages.diagram import places_of
from tiered.support.pages.svg import svg_file, text

_COLOURS: Final = ("lightblue", "palegreen", "khaki", "lightpink", "plum", "lightsalmon")
_GREY: Final = "whitesmoke"

_WIDTH: Final = 230
_HEIGHT: Final = 46
_GAP: Final = 34
_LONGEST: Final = 34
"""The most characters of a line in a box."""


class Box(NamedTuple):
    """A region, or nodes between regions that no target takes.

    Attributes:
        title, detail: its two lines of text.
        nodes: its nodes.
        target: the target, "host" if there is none.
        part: its number among the partitions; None for the host.
    """

    title: str
    detail: str
    nodes: tuple[Node, ...]
    target: str
    part: int | None


def to_dot(model: Model, partitions: Sequence[Partition]) -> str:
    """Return the partitions as a graph in DOT: a box each, and the number of edges between them.

    The nodes between partitions are boxes too, grey ones.
    """
    boxes = _boxes(model, partitions)
    lines = ["digraph partitions {", "  rankdir=TB;", "  node [shape=box, fontname=sans];"]
    for at, box in enumerate(boxes):
        label = _quoted(box.title, box.detail)
        lines.append(f"  p{at} [label={label}, style=filled, fillcolor={_colour(boxes, box)}];")
    for (one, other), count in _edges(boxes).items():
        lines.append(f"  p{one} -> p{other} [label={count}];")
    return "\n".join([*lines, "}", ""])


def to_svg(model: Model, partitions: Sequence[Partition]) -> str:
    """Return the same graph as SVG, producers above consumers."""
    boxes = _boxes(model, partitions)
    return _svg(boxes, _edges(boxes))


def _boxes(model: Model, partitions: Sequence[Partition]) -> list[Box]:
    """Return the partitions and the groups of the nodes between them, in topological order."""
    rows = report_of(model, partitions)
    boxes = [
        _box(row.name, part.nodes, part.target, at)
        for at, (part, row) in enumerate(zip(partitions, rows, strict=False))
    ]
    graph = model.main
    taken = {node for part in partitions for node in part.nodes}
    rest = {n: HOST for n in graph.nodes if n not in taken and not n.is_op("Constant")}
    own = [[n for n in part.nodes if not n.is_op("Constant")] for part in partitions]
    groups = grouped(graph, rest, fixed=[nodes for nodes in own if nodes])
    boxes += [_box(HOST, group.nodes, HOST, None) for group in groups]
    shared = {node for node in graph.nodes_of("Constant") if node not in taken}
    order = order_of_groups(graph, [box.nodes for box in boxes], shared)
    assert order is not None, "the partitions have no cycle"
    return [boxes[at] for at in order]


def _box(name: str, nodes: tuple[Node, ...], target: str, part: int | None) -> Box:
    counts = Counter(node.operator for node in nodes).most_common(4)
    detail = ", ".join(f"{count} {operator}" for operator, count in counts)
    return Box(f"{name}: {counted(len(nodes), 'node')}", detail, nodes, target, part)


def _edges(boxes: Sequence[Box]) -> Counter[tuple[int, int]]:
    """Return how many edges lead from one box to another."""
    holder = {node: at for at, box in enumerate(boxes) for node in box.nodes}
    counts: Counter[tuple[int, int]] = Counter()
    for node, at in holder.items():
        for source in node.predecessors:
            if holder.get(source, at) != at:
                counts[holder[source], at] += 1
    return counts


def _colour(boxes: Sequence[Box], box: Box) -> str:
    if box.part is None:
        return _GREY
    targets = sorted({each.target for each in boxes if each.part is not None})
    return _COLOURS[targets.index(box.target) % len(_COLOURS)]


def _svg(boxes: Sequence[Box], edges: Counter[tuple[int, int]]) -> str:
    places = places_of(len(boxes), tuple(sorted(edges)))
    widths = Counter(layer for layer, _ in places)
    most = max(widths.values(), default=1)
    corners = [
        (
            _GAP + (column + (most - widths[layer]) / 2) * (_WIDTH + _GAP),
            float(_GAP + layer * (_HEIGHT + _GAP)),
        )
        for layer, column in places
    ]
    long = [edge for edge in edges if places[edge[1]][0] - places[edge[0]][0] > 1]
    width = most * (_WIDTH + _GAP) + _GAP + (_WIDTH // 2 if long else 0)
    height = len(widths) * (_HEIGHT + _GAP) + _GAP
    lines = [
        line
        for (one, other), count in sorted(edges.items())
        for line in _edge(corners[one], corners[other], count)
    ]
    lines += [
        line
        for box, corner in zip(boxes, corners, strict=True)
        for line in _drawn(box, corner, _colour(boxes, box))
    ]
    return svg_file(width, height, f"{counted(len(boxes), 'region')} and what they read", lines)


def _drawn(box: Box, corner: tuple[float, float], colour: str) -> Iterator[str]:
    x, y = corner
    yield (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" '
        f'fill="{colour}" stroke="#4a5568"/>'
    )
    for line, down, weight in ((box.title, 18, "bold"), (box.detail, 35, "normal")):
        yield (
            f'<text class="box" x="{x + _WIDTH / 2:.0f}" y="{y + down:.0f}" text-anchor="middle" '
            f'font-weight="{weight}">{text(_short(line))}</text>'
        )


def _edge(start: tuple[float, float], end: tuple[float, float], count: int) -> Iterator[str]:
    """Yield a curve from a box to another below it, and the number of edges that it is.

    It passes the boxes between them on the right, and has its number there.
    """
    layers = round((end[1] - start[1]) / (_HEIGHT + _GAP))
    if layers > 1:
        x, y = start[0] + _WIDTH, start[1] + _HEIGHT / 2
        to_x, to_y = end[0] + _WIDTH, end[1] + _HEIGHT / 2
        out = max(x, to_x) + _WIDTH / 2 * (1 - 1 / layers)
        bends = (out, y), (out, to_y)
    else:
        x, y = start[0] + _WIDTH / 2, start[1] + _HEIGHT
        to_x, to_y = end[0] + _WIDTH / 2, end[1]
        bends = (x, (y + to_y) / 2), (to_x, (y + to_y) / 2)
    points = ", ".join(f"{left:.0f} {down:.0f}" for left, down in (*bends, (to_x, to_y)))
    yield f'<path class="edge" d="M{x:.0f} {y:.0f} C{points}" fill="none"/>'
    middle = (x + 3 * bends[0][0] + 3 * bends[1][0] + to_x) / 8
    yield f'<text class="soft" x="{middle + 4:.0f}" y="{(y + to_y) / 2 + 4:.0f}">{count}</text>'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _quoted(*lines: str) -> str:
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return f'"{text}"'
