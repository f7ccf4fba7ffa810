"""The page of a layout report: the totals, and the Transposes that stay."""

import pytest

from tiered.analysis.layout.cost import Cost
from tiered.analysis.layout.layout_page import FEW, LARGEST, MOST, layout_page, left_section
from tiered.analysis.layout.transpose_report import LayoutReport, LeftTranspose
from tiered.support.pages.charts import Chart, Point, Tick


def left(count: int, nbytes: int = 1000) -> list[LeftTranspose]:
    return [
        LeftTranspose(f"t{at}", (0, 2, 1), nbytes * (count - at), "input 'x'", "output 'y'")
        for at in range(count)
    ]


def test_a_page_has_the_totals_and_the_name_of_the_model() -> None:
    report = LayoutReport((5, 2), (5000, 2000), Cost(3000, 4), ())
    html = layout_page(report, "model.onnx")
    assert "tiered layout model.onnx" in html
    for row in (("before", "5", "4.9 KiB"), ("each operator on its own", "4", "2.9 KiB"),
                ("after", "2", "2.0 KiB")):  # fmt: skip
        shown = html[html.index(f">{row[0]}<") :].partition("</tr>")[0]
        assert all(f">{each}<" in shown for each in row), shown
    assert "Transposes that stay" not in html
    assert "Transposes that stay" in layout_page(report.__class__(
        (5, 2), (5000, 2000), Cost(3000, 4), tuple(left(2))), "m")  # fmt: skip


def test_a_row_has_the_share_of_the_bytes_and_what_blocks() -> None:
    section = left_section(left(2))
    assert section.title == "Transposes that stay"
    (table,) = section.data["tables"]
    assert table.headers == (
        "name", "perm", "bytes", "share", "blocked above by", "blocked below by",
    )  # fmt: skip
    assert table.rows == [
        ("t0", "0,2,1", "2.0 KiB", "66.7%", "input 'x'", "output 'y'"),
        ("t1", "0,2,1", "1000 B", "33.3%", "input 'x'", "output 'y'"),
    ]
    assert section.data["notes"] == []


def test_transposes_that_move_no_bytes_have_no_share() -> None:
    (table,) = left_section(left(2, 0)).data["tables"]
    assert [row[3] for row in table.rows] == ["0.0%", "0.0%"]


@pytest.mark.parametrize(("count", "has_chart"), [(FEW - 1, False), (FEW, True)])
def test_a_few_transposes_have_no_chart(count: int, has_chart: bool) -> None:
    assert ("chart" in left_section(left(count)).data) == has_chart


def test_a_chart_is_of_all_bytes_so_far() -> None:
    # 3 of 6 parts, then 5.
    points = (
        Point(362.7, 124.0, "t0: 2.9 KiB"), Point(653.3, 57.3, "t1: 2.0 KiB"),
        Point(944.0, 24.0, "t2: 1000 B"),
    )  # fmt: skip
    ticks = zip((224.0, 174.0, 124.0, 74.0, 24.0), (0, 25, 50, 75, 100), strict=True)
    assert left_section(left(3)).data["chart"] == Chart(
        "Share of the bytes that the 3 largest Transposes move",
        "Transposes, most bytes first",
        "bytes",
        tuple(Tick(at, f"{part}%") for at, part in ticks),
        points,
        "72,224 362.7,124 653.3,57.3 944,24",
    )


def test_a_chart_and_a_page_are_bounded() -> None:
    assert (FEW, LARGEST, MOST) == (3, 100, 2000)
    section = left_section(left(LARGEST + 1))
    assert len(section.data["chart"].points) == LARGEST
    assert section.data["notes"] == []
    assert len(left_section(left(MOST)).data["table"].rows) == MOST
    section = left_section(left(MOST + 1))
    assert len(section.data["table"].rows) == MOST
    assert section.data["notes"] == ["The first 2,000 of 2,001 Transposes are shown."]


def test_a_long_name_is_cut() -> None:
    long = LeftTranspose("n" * 500, (1, 0), 8, "a" * 500, "b" * 300)
    (table,) = left_section([long]).data["tables"]
    ((name, _, _, _, above, below),) = table.rows
    assert name.endswith("… (500 characters)")
    assert above == "a" * 400 + "… (500 characters)"
    assert below == "b" * 300
