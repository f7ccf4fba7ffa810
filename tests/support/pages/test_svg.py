from xml.etree import ElementTree

from tiered.support.pages.svg import svg_file, text


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
