"""The curve of a memory plan: the line of blocks, and the picture."""

import re
from xml.etree import ElementTree

import pytest

from tiered import Model
from tiered.extensions.memory import MemoryPlan, memory_line, memory_plan, memory_svg
from tiered.extensions.memory.liveness import LivenessStep
from tiered.testing import parse

DIAMOND = "(float[4] x) => (float[4] y) { a = Relu(x) b = Sin(a) c = Cos(a) y = Add(b, c) }"
SVG = "{http://www.w3.org/2000/svg}"


def planned(text: str) -> MemoryPlan:
    return memory_plan(Model.from_proto(parse(text)))


def plan_of(*sizes: int) -> MemoryPlan:
    """Return a plan with these bytes at its nodes."""
    steps = tuple(LivenessStep(f"n{at}", "Neg", each) for at, each in enumerate(sizes))
    return MemoryPlan(steps, (), 0, (), (), ())


def test_the_chart_names_the_peak_and_escapes_it() -> None:
    proto = parse(DIAMOND)
    proto.graph.node[2].name = "<b>&\x01" + "n" * 1000
    plan = memory_plan(Model.from_proto(proto), in_place=False)
    chart = memory_svg(plan, "model<1>")
    assert "&lt;b&gt;&amp;\\u0001nn" in chart
    assert "(1,005 characters) (Cos): 64 B" in chart
    labels = [each.text for each in ElementTree.fromstring(chart).iter(f"{SVG}text")]
    assert labels[0] == "model<1>"
    assert labels[1:6] == ["0 B", "16 B", "32 B", "48 B", "64 B"]
    assert memory_line(plan, width=2) == "▆█"


@pytest.mark.parametrize(
    ("sizes", "width", "line"),
    [
        ((), 60, ""),
        ((0, 0), 60, "▁▁"),
        ((7, 0, 1, 2, 3, 4, 5, 6), 60, "█▁▂▃▄▅▆▇"),
        ((1,), 60, "█"),
        ((70, 1), 60, "█▁"),
        ((1, 7, 3, 2), 2, "█▄"),
        ((1, 2, 7), 2, "▂█"),
        ((1, 2, 7), 1, "█"),
        ((3, 6), 1, "█"),
    ],
)
def test_a_column_is_the_largest_of_its_nodes(
    sizes: tuple[int, ...], width: int, line: str
) -> None:
    assert memory_line(plan_of(*sizes), width) == line


def test_a_line_is_sixty_blocks_wide_at_most() -> None:
    assert len(memory_line(plan_of(*range(500)))) == 60
    assert len(memory_line(plan_of(*range(59)))) == 59


def lines(plan: MemoryPlan) -> list[str]:
    """Return the labels of the grid, from below."""
    return re.findall(r'text-anchor="end">([^<]+)</text>', memory_svg(plan))


@pytest.mark.parametrize(
    ("peak", "labels"),
    [
        (0, ["0 B", "1 B"]),
        (1, ["0 B", "1 B"]),
        (5, ["0 B", "1 B", "2 B", "3 B", "4 B", "5 B"]),
        (6, ["0 B", "2 B", "4 B", "6 B"]),
        (11, ["0 B", "2 B", "4 B", "6 B", "8 B", "10 B"]),
        (12, ["0 B", "4 B", "8 B", "12 B"]),
    ],
)
def test_the_grid_has_powers_of_two_and_seven_lines_at_most(peak: int, labels: list[str]) -> None:
    found = [label for label in lines(plan_of(peak)) if " B" in label and "(" not in label]
    assert found == labels


def test_the_curve_has_a_step_for_each_node() -> None:
    text = memory_svg(plan_of(2, 4))
    # From 72 to 944 in two steps; from 224 down at 0 bytes to 24 at the peak of 4.
    (points,) = re.findall(r'class="area" points="([^"]+)"', text)
    assert points == "72,224 72,124 508,124 508,24 944,24 944,224"


@pytest.mark.parametrize(
    ("sizes", "x", "beside", "anchor"),
    [
        ((4, 1), 290.0, 298.0, "start"),
        ((1, 4), 726.0, 718.0, "end"),
        ((4,), 508.0, 500.0, "end"),
    ],
)
def test_the_first_peak_is_named_on_the_side_with_room(
    sizes: tuple[int, ...], x: float, beside: float, anchor: str
) -> None:
    text = memory_svg(plan_of(*sizes))
    assert f'<circle class="bad" cx="{x}" cy="24.0" r="3.5"/>' in text
    name = f"n{sizes.index(4)} (Neg): 4 B"
    assert f'<text class="bad" x="{beside}" y="28.0" text-anchor="{anchor}">{name}' in text


def test_a_title_and_the_number_of_nodes_are_written() -> None:
    assert "bytes of tensors alive at each node" in memory_svg(plan_of(1))
    text = memory_svg(plan_of(1, 2), "mine & yours")
    assert "mine &amp; yours" in text
    assert ">2 nodes in the order of the file<" in text
    assert ">1 node in the order of the file<" in memory_svg(plan_of(1))


def test_a_plan_without_nodes_has_no_peak() -> None:
    text = memory_svg(plan_of())
    assert "<circle" not in text
    assert 'points="72,224 72,224"' in text
