"""Charts of partitions: boxes, the edges between them, their colours and places."""

import re

import pytest

from tests.extensions.partition.graphs import model
from tiered import Model
from tiered.extensions.partition import OperatorSupport, propose_partitions
from tiered.extensions.partition.partition_charts import _short, to_dot, to_svg
from tiered.extensions.partition.partitioner import Partition

SANDWICH = (
    "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> "
    "{ a = Add(x, w)  b = Sin(a)  c = Neg(b)  d = Cos(c)  y = Sub(d, a) }"
)


def parts_of(of: Model, **targets: str) -> list[Partition]:
    supports = {name: OperatorSupport({operator: None}) for name, operator in targets.items()}
    return propose_partitions(of, supports, allows_single_node_partition=True)


def test_a_box_for_each_partition_and_for_the_nodes_between() -> None:
    of = model(SANDWICH)
    assert (
        to_dot(of, parts_of(of, npu="Add", dsp="Neg"))
        == r"""digraph partitions {
  rankdir=TB;
  node [shape=box, fontname=sans];
  p0 [label="npu 0: 1 node\n1 Add", style=filled, fillcolor=palegreen];
  p1 [label="host: 1 node\n1 Sin", style=filled, fillcolor=whitesmoke];
  p2 [label="dsp 1: 1 node\n1 Neg", style=filled, fillcolor=lightblue];
  p3 [label="host: 2 nodes\n1 Cos, 1 Sub", style=filled, fillcolor=whitesmoke];
  p0 -> p1 [label=1];
  p1 -> p2 [label=1];
  p2 -> p3 [label=1];
  p0 -> p3 [label=1];
}
"""
    )


def test_a_model_without_partitions_is_one_box() -> None:
    text = to_dot(model(SANDWICH), [])
    assert 'p0 [label="host: 5 nodes\\n' in text
    assert "->" not in text


def test_the_most_frequent_operators_come_first_and_four_are_named() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Sin(x)  b = Cos(a)  c = Neg(b)  d = Neg(c) "
        "e = Abs(d)  f = Exp(e)  y = Abs(f) }"
    )
    assert "7 nodes\\n2 Neg, 2 Abs, 1 Sin, 1 Cos" in to_dot(of, [])


def test_constants_are_no_nodes_of_the_host() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) "
        "{ k = Constant<value_floats=[3.0, 4.0]>()  a = Add(x, k)  b = Sin(a)  y = Add(b, k) }"
    )
    text = to_dot(of, parts_of(of, npu="Add"))
    assert text.count('[label="') == 3
    assert "Constant" not in text


def test_edges_between_two_boxes_are_counted() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(x)  y = Add(a, b) }")
    assert "p0 -> p1 [label=2];" in to_dot(of, parts_of(of, npu="Neg"))


def test_quotes_and_backslashes_of_a_target_are_escaped() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    part = Partition(0, tuple(of.main.nodes), 'a"b\\c')
    assert 'label="a\\"b\\\\c 0: 1 node\\n1 Neg"' in to_dot(of, [part])


def test_a_seventh_target_has_the_first_colour_again() -> None:
    of = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    nodes = tuple(of.main.nodes)
    chain = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  d = Neg(c) "
        "e = Neg(d)  f = Neg(e)  y = Neg(f) }"
    )
    parts = [Partition(at, (node,), f"t{at}") for at, node in enumerate(chain.main.nodes)]
    colours = re.findall(r"fillcolor=(\w+)", to_dot(chain, parts))
    assert len(set(colours)) == 6
    assert colours[0] == colours[6]
    assert "lightblue" in to_dot(of, [Partition(0, nodes, "npu")])


def test_the_svg_has_the_boxes_below_each_other() -> None:
    of = model(SANDWICH)
    text = to_svg(of, parts_of(of, npu="Add", dsp="Neg"))
    box = r'<rect x="(\d+)" y="(\d+)" width="230" height="46" rx="4" fill="(\w+)"'
    boxes = re.findall(box, text)
    assert boxes == [
        ("34", "34", "palegreen"), ("34", "114", "whitesmoke"), ("34", "194", "lightblue"),
        ("34", "274", "whitesmoke"),
    ]  # fmt: skip
    # 230 + 2 * 34 and half a box for the edge beside the boxes; 4 * (46 + 34) + 34.
    assert 'viewBox="0 0 413 354"' in text
    assert 'aria-label="4 regions and what they read"' in text


def test_edges_are_curves_with_their_number() -> None:
    of = model(SANDWICH)
    text = to_svg(of, parts_of(of, npu="Add", dsp="Neg"))
    paths = re.findall(r'<path class="edge" d="([^"]+)"', text)
    assert paths == [
        "M149 80 C149 97, 149 97, 149 114",
        "M264 57 C341 57, 341 297, 264 297",  # beside two boxes: 264 + 115 * (1 - 1 / 3)
        "M149 160 C149 177, 149 177, 149 194",
        "M149 240 C149 257, 149 257, 149 274",
    ]
    labels = re.findall(r'<text class="soft" x="(\d+)" y="(\d+)">(\d+)<', text)
    assert labels[0] == ("153", "101", "1")


def test_a_picture_without_long_edges_is_as_wide_as_its_boxes() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Sin(a) }")
    text = to_svg(of, parts_of(of, npu="Neg"))
    assert 'viewBox="0 0 298 194"' in text
    assert "2 regions" in text


def test_boxes_of_one_layer_are_side_by_side_and_centred() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  c = Cos(a)  d = Neg(b) "
        "e = Abs(c)  y = Add(d, e) }"
    )
    nodes = of.main.nodes
    parts = [Partition(at, (node,), f"t{at}") for at, node in enumerate(nodes)]
    places = re.findall(r'<rect x="(\d+)" y="(\d+)" width="230"', to_svg(of, parts))
    assert places[0] == ("166", "34")  # between 34 and 34 + 230 + 34
    assert {places[1][0], places[2][0]} == {"34", "298"}


@pytest.mark.parametrize(("size", "shown"), [(20, "t" * 20 + " 0: 1 node"), (60, "t" * 31 + "...")])
def test_long_lines_are_cut(size: int, shown: str) -> None:
    of = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    text = to_svg(of, [Partition(0, tuple(of.main.nodes), "t" * size)])
    assert f">{shown}</text>" in text


def test_all_that_a_chart_draws() -> None:
    of = model(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Sin(a)  c = Cos(a)  d = Neg(b) "
        "e = Abs(c)  f = Add(d, e)  y = Mul(f, a) }"
    )
    parts = [Partition(at, (node,), f"t{at}") for at, node in enumerate(of.main.nodes)]
    svg = to_svg(of, parts)
    paths = re.findall(r'<path class="edge" d="(.*?)" fill="none"/>', svg)
    numbers = re.findall(r'<text class="soft" x="(\d+)" y="(\d+)">1</text>', svg)
    assert list(zip(paths, map(" ".join, numbers), strict=True)) == [
        ("M281 80 C281 97, 149 97, 149 114", "219 101"),
        ("M281 80 C281 97, 413 97, 413 114", "351 101"),
        ("M396 57 C482 57, 482 377, 396 377", "465 221"),
        ("M149 160 C149 177, 149 177, 149 194", "153 181"),
        ("M413 160 C413 177, 413 177, 413 194", "417 181"),
        ("M149 240 C149 257, 281 257, 281 274", "219 261"),
        ("M413 240 C413 257, 281 257, 281 274", "351 261"),
        ("M281 320 C281 337, 281 337, 281 354", "285 341"),
    ]
    corners = [(166, 34), (34, 114), (298, 114), (34, 194), (298, 194), (166, 274), (166, 354)]
    assert [tuple(map(int, each)) for each in re.findall(r'<rect x="(\d+)" y="(\d+)"', svg)] == [
        *corners
    ]
    texts = re.findall(
        r'<text class="box" x="(\d+)" y="(\d+)" text-anchor="middle" font-weight="(\w+)">(.*?)<',
        svg,
    )
    words = zip(corners, ("Neg", "Sin", "Cos", "Neg", "Abs", "Add", "Mul"), strict=True)
    assert [" ".join(each) for each in texts] == [
        line
        for at, ((x, y), operator) in enumerate(words)
        for line in (
            f"{x + 115} {y + 18} bold t{at} {at}: 1 node",
            f"{x + 115} {y + 35} normal 1 {operator}",
        )
    ]
    assert 'viewBox="0 0 677 434"' in svg


def test_a_long_text_ends_in_dots() -> None:
    for length, expected in ((33, "x" * 33), (34, "x" * 34), (35, "x" * 31 + "...")):
        assert _short("x" * length) == expected
