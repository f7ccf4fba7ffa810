"""Charts of a profile: where boxes, lines and texts are, and what is left out."""

import re
from collections.abc import Sequence

import pytest

from tiered.extensions.measurement.profile.executed import ExecutedPlace
from tiered.extensions.measurement.profile.model_profile import NodeTime, Profile
from tiered.extensions.measurement.profile.profile_charts import MOST_BLOCKS, flame_svg, graph_svg
from tiered.runtime.opening import Opening


def node(
    op_type: str,
    milliseconds: float,
    layer: Sequence[str] = (),
    outputs: Sequence[str] = (),
    inputs: Sequence[str] = (),
) -> NodeTime:
    where = ExecutedPlace(tuple(layer), tuple(outputs), tuple(inputs))
    return NodeTime(op_type, op_type, "CPU", where, milliseconds / 1e3, 1, (), (), 0, 0)


def profile(*nodes: NodeTime) -> Profile:
    return Profile("model", nodes, 1.0, 1, Opening())


def boxes(svg: str, kind: str) -> list[tuple[str, ...]]:
    found = re.findall(rf'class="{kind}" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', svg)
    return [each for each in found if each]


def texts(svg: str) -> list[str]:
    return re.findall(r"<text .*?>(.*?)</text>", svg)


# --- the flame chart ------------------------------------------------------------------------------


def test_a_layer_is_as_wide_as_its_time_and_below_its_operators() -> None:
    svg = flame_svg(
        profile(node("Conv", 3, layer=["body"]), node("Relu", 1, layer=["body"]), node("Add", 4))
    )
    assert boxes(svg, "bar") == [
        ("0.0", "88.0", "1199.5", "20"),  # all nodes
        ("0.0", "66.0", "599.5", "20"),  # Add: equal times by name
        ("600.0", "66.0", "599.5", "20"),  # body
        ("600.0", "44.0", "449.5", "20"),  # Conv
        ("1050.0", "44.0", "149.5", "20"),  # Relu
    ]
    assert texts(svg) == [
        "all nodes 8 ms (100%)", "Add 4 ms (50%)", "body 4 ms (50%)", "Conv 3 ms (38%)",
        "Relu 1 ms (12%)",
    ]  # fmt: skip
    assert 'viewBox="0 0 1200 116"' in svg
    assert 'aria-label="layers by time"' in svg


def test_the_more_time_the_darker() -> None:
    svg = flame_svg(profile(node("Add", 3), node("Mul", 1)), "title")
    assert re.findall(r'fill-opacity="(.*?)"', svg) == ["0.45", "0.37", "0.20"]
    assert 'aria-label="title"' in svg


def test_narrow_boxes_have_less_text_and_then_none() -> None:
    svg = flame_svg(profile(node("Add", 1197), node("Multiply", 2), node("Neg", 0.9)))
    assert len(boxes(svg, "bar")) == 3  # of fewer pixels than one there is no box
    svg = flame_svg(profile(node("Add", 1200 - 25), node("Multiply", 25)))
    assert texts(svg)[2] == "Mul"
    assert len(texts(flame_svg(profile(node("Add", 1200 - 24), node("Multiply", 24))))) == 2


def test_no_time_at_all_has_a_chart_too() -> None:
    assert boxes(flame_svg(profile(node("Add", 0))), "bar") == []
    assert boxes(flame_svg(profile()), "bar") == []


# --- the graph ------------------------------------------------------------------------------------

FORK = (
    node("Conv", 3, outputs=["a"], inputs=["x"]),
    node("Relu", 1, outputs=["b"], inputs=["a"]),
    node("Neg", 0, outputs=["c"], inputs=["a"]),
)


def test_lines_go_from_the_foot_of_a_producer_to_the_top_of_its_user() -> None:
    svg = graph_svg(profile(*FORK))
    assert boxes(svg, "bar") == [
        ("20", "40", "150", "34"), ("20", "98", "150", "34"), ("190", "98", "150", "34"),
    ]  # fmt: skip
    assert boxes(svg, "back") == boxes(svg, "bar")
    assert re.findall(r'"edge" x1="(.*?)" y1="(.*?)" x2="(.*?)" y2="(.*?)"', svg) == [
        ("95", "74", "95", "98"),
        ("95", "74", "265", "98"),
    ]
    assert 'viewBox="0 0 400 156"' in svg
    assert 'aria-label="the graph by time"' in svg
    assert re.findall(r'fill-opacity="(.*?)"', svg) == ["0.66", "0.26", "0.06"]


def test_a_box_has_the_operator_its_time_and_its_share() -> None:
    svg = graph_svg(profile(*FORK), "title")
    assert texts(svg) == ["Conv", "3 ms, 75.0%", "Relu", "1 ms, 25.0%", "Neg", "0 ms, 0.0%"]
    assert re.findall(r'<text x="(.*?)" y="(.*?)">', svg)[:2] == [("25", "54"), ("25", "68")]
    assert 'aria-label="title"' in svg


def test_a_long_name_keeps_its_end() -> None:
    assert texts(graph_svg(profile(node("A" * 23, 1))))[0] == "A" * 23
    assert texts(graph_svg(profile(node("B" + "A" * 23, 1))))[0] == "…" + "A" * 22


def test_a_wide_graph_has_the_width_of_its_boxes() -> None:
    svg = graph_svg(profile(*(node("Neg", 1, outputs=[str(at)]) for at in range(3))))
    assert 'viewBox="0 0 530 98"' in svg


@pytest.mark.parametrize(
    ("count", "layers", "blocks"),
    [
        (MOST_BLOCKS, 1, MOST_BLOCKS),  # a box a node
        (MOST_BLOCKS + 1, 3, 3),  # a box a layer
        (MOST_BLOCKS * 2, MOST_BLOCKS, MOST_BLOCKS),
        (MOST_BLOCKS * 2, MOST_BLOCKS + 1, MOST_BLOCKS),  # too many layers: boxes of equal parts
    ],
)
def test_a_large_graph_has_a_box_a_layer(count: int, layers: int, blocks: int) -> None:
    nodes = [node("Neg", 1, layer=[f"l{at * layers // count}"]) for at in range(count)]
    assert len(boxes(graph_svg(profile(*nodes)), "bar")) == blocks


def test_the_deepest_layers_that_fit_are_boxes() -> None:
    nodes = [node("Neg", 1, layer=["m", f"l{at // 100}", f"n{at}"]) for at in range(200)]
    svg = graph_svg(profile(*nodes))
    assert [each for each in texts(svg) if "ms" not in each] == ["m/l0", "m/l1"]
    even = graph_svg(profile(*(node("Neg", 1, layer=[str(at)]) for at in range(301))))
    assert set(texts(even)[::2]) == {"2 nodes", "3 nodes"}


def test_the_flame_chart_has_a_box_for_each_layer() -> None:
    svg = flame_svg(profile(node("MatMul", 750, ["m", "<one>"]), node("Add", 250, ["m"])))
    assert svg.count("<rect") == 1 + 5  # the background; all nodes, m, <one>, MatMul, Add
    assert "&lt;one&gt; 750 ms (75%)" in svg
    assert flame_svg(profile()).startswith("<svg")


def test_a_graph_has_at_most_a_number_of_blocks() -> None:
    few = profile(node("Add", 1, outputs=["p"], inputs=["x"]), node("Neg", 1, (), ["q"], ["p"]))
    assert graph_svg(few).count('class="edge"') == 1
    for layer in (lambda at: ("m", f"layer.{at // 10}"), lambda at: ()):
        nodes = (node("Add", 1, layer(at), [f"t{at}"], [f"t{at - 1}"]) for at in range(1000))
        assert graph_svg(profile(*nodes)).count('class="bar"') <= MOST_BLOCKS
    assert graph_svg(profile()).startswith("<svg")


FLAME = """\
<rect class="bar" x="0.0" y="110.0" width="1199.5" height="20" fill-opacity="0.45"/>
<text x="3.0" y="124.0">all nodes 7.5 ms (100%)</text>
<rect class="bar" x="0.0" y="88.0" width="639.5" height="20" fill-opacity="0.29"/>
<text x="3.0" y="102.0">Add 4 ms (53%)</text>
<rect class="bar" x="640.0" y="88.0" width="559.5" height="20" fill-opacity="0.27"/>
<text x="643.0" y="102.0">body 3.5 ms (47%)</text>
<rect class="bar" x="640.0" y="66.0" width="479.5" height="20" fill-opacity="0.25"/>
<text x="643.0" y="80.0">Conv 3 ms (40%)</text>
<rect class="bar" x="1120.0" y="66.0" width="79.5" height="20" fill-opacity="0.14"/>
<text x="1123.0" y="80.0">in 0.5 ms (</text>
<rect class="bar" x="1120.0" y="44.0" width="79.5" height="20" fill-opacity="0.14"/>
<text x="1123.0" y="58.0">Relu 0.5 ms</text>
""".splitlines()
GRAPH = """\
<line class="edge" x1="95" y1="74" x2="95" y2="98"/>
<line class="edge" x1="95" y1="74" x2="95" y2="156"/>
<line class="edge" x1="95" y1="132" x2="95" y2="156"/>
<rect class="back" x="20" y="40" width="150" height="34"/>
<rect class="bar" x="20" y="40" width="150" height="34" rx="4" fill-opacity="0.51"/>
<text x="25" y="54">Conv</text>
<text x="25" y="68">3 ms, 40.0%</text>
<rect class="back" x="20" y="98" width="150" height="34"/>
<rect class="bar" x="20" y="98" width="150" height="34" rx="4" fill-opacity="0.14"/>
<text x="25" y="112">Relu</text>
<text x="25" y="126">0.5 ms, 6.7%</text>
<rect class="back" x="20" y="156" width="150" height="34"/>
<rect class="bar" x="20" y="156" width="150" height="34" rx="4" fill-opacity="0.66"/>
<text x="25" y="170">Add</text>
<text x="25" y="184">4 ms, 53.3%</text>
""".splitlines()


def test_all_that_the_charts_draw() -> None:
    nodes = (
        node("Conv", 3, ["body"], ["a"], ["x"]), node("Relu", 0.5, ["body", "in"], ["b"], ["a"]),
        node("Add", 4, [], ["c"], ["b", "a"]),
    )  # fmt: skip
    assert flame_svg(profile(*nodes)).splitlines()[3:-1] == FLAME
    assert graph_svg(profile(*nodes)).splitlines()[3:-1] == GRAPH


def test_a_text_fits_exactly_or_is_cut() -> None:
    # 24.6 pixels are three letters beside a margin of 6.
    for milliseconds, shown in ((24.6, "Mul"), (24.5, None)):
        svg = flame_svg(profile(node("Add", 1200 - milliseconds), node("Multiply", milliseconds)))
        assert texts(svg)[2:] == ([shown] if shown else [])
    one = flame_svg(profile(node("Add", 1199), node("Mul", 1)))
    assert boxes(one, "bar")[-1][2] == "0.5", "a pixel is a box"
    assert texts(graph_svg(profile(node("Add", 0))))[1] == "0 ms, 0.0%"
