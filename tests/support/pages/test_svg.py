from xml.etree import ElementTree

from tiered.support.pages.charts import WIDTH, Tick
from tiered.support.pages.svg import framed, named_point, svg_file, text


def test_a_chart_fits_its_window_and_has_two_themes() -> None:
    chart = svg_file(960, 320, "<a> & \x01b", ['<text x="1" y="2">t</text>'])
    root = ElementTree.fromstring(chart)
    assert root.attrib["viewBox"] == "0 0 960 320"
    assert "max-width:100%" in root.attrib["style"]
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "<a> & \\u0001b")
    assert "prefers-color-scheme: dark" in chart
    assert [element.tag.rpartition("}")[2] for element in root] == ["style", "rect", "text"]


def test_long_names_are_cut() -> None:
    assert text("n" * 10_000) == "n" * 90 + "… (10,000 characters)"


def test_a_chart_has_its_grid_with_labels_and_a_note() -> None:
    assert list(framed("a & b", [Tick(16.0, "1 ms"), Tick(200.0, "0")], "the note")) == [
        '<text x="72" y="16" font-size="14">a &amp; b</text>',
        '<line class="grid" x1="72" y1="16.0" x2="944" y2="16.0"/>',
        '<text class="soft" x="64" y="20.0" text-anchor="end">1 ms</text>',
        '<line class="grid" x1="72" y1="200.0" x2="944" y2="200.0"/>',
        '<text class="soft" x="64" y="204.0" text-anchor="end">0</text>',
        '<text class="soft" x="480" y="248" text-anchor="middle">the note</text>',
    ]


def test_the_name_of_a_point_is_on_the_side_with_room() -> None:
    for x, place in (
        (WIDTH / 2, f'x="{WIDTH / 2 + 8:.1f}" y="9.0" text-anchor="start"'),
        (WIDTH / 2 + 1, f'x="{WIDTH / 2 - 7:.1f}" y="9.0" text-anchor="end"'),
    ):
        assert named_point(x, 5, "p") == f'<text class="bad" {place}>p</text>'
