"""The page of a fleet: what fails, stands out, fires; shortened and escaped."""

import re
from typing import Any

import pytest

from tests.support.pages.reader import read
from tiered.extensions.fleet.fleet_page import fleet_page
from tiered.extensions.fleet.result_line import Result, Status


def model(name: str, status: Status = "done", **more: Any) -> Result:
    return Result(name, "", status, **more)


def rows(results: list[Result], title: str) -> list[list[str]]:
    """Return the rows of the section with a title, as cells of text."""
    text = re.sub(r"\s+", " ", fleet_page(results))
    found = re.search(rf">{title}</h2>(.*?)(?=<h2|</body>|$)", text)
    if found is None:
        return []
    lines = re.findall(r"<tr>(.*?)</tr>", found[1])
    cells = [re.findall(r'<t(?:d|h scope="row")[^>]*>(.*?)</t[dh]>', line) for line in lines]
    return [[re.sub("<[^>]*>", "", cell).strip() for cell in row] for row in cells if row]


def titles(results: list[Result]) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]+)</h2>", fleet_page(results))


def test_a_batch_without_models_has_a_summary() -> None:
    assert titles([]) == ["Summary"]
    assert "0 models, 0.00 s of work" in fleet_page([])


def test_the_summary_counts_models_by_status_and_time() -> None:
    results = [
        model("a", seconds=1.5, verified=True), model("b", "cached"),
        model("c", "failed", verified=False), model("d", seconds=1000),
    ]  # fmt: skip
    assert rows(results, "Summary") == [["done", "2"], ["cached", "1"], ["failed", "1"]]
    text = fleet_page(results)
    assert "4 models, 1,001.50 s of work" in text
    assert "not verified: 1 model" in text
    assert "not verified" not in fleet_page(results[:2])


def test_failures_are_grouped_by_status_and_reason_without_the_name() -> None:
    results = [
        model("x/a.onnx", "failed", reason="x/a.onnx: no input"),
        model("x/b.onnx", "failed", reason="cannot read b.onnx: no input"),
        model("x/c.onnx", "failed", reason="x/c.onnx: no input"),
        model("x/d.onnx", "crashed", reason="x/d.onnx: no input"),
    ]
    assert rows(results, "What failed") == [
        ["2", "failed", "MODEL: no input", "x/a.onnx"],
        ["1", "crashed", "MODEL: no input", "x/d.onnx"],
        ["1", "failed", "cannot read MODEL: no input", "x/b.onnx"],
    ]
    assert "What failed" not in titles([model("a")])


@pytest.mark.parametrize(("seconds", "found"), [(5.0, []), (5.1, [["z", "5.10 s", "5.1", "done"]])])
def test_slow_models_take_more_than_five_times_the_median(
    seconds: float, found: list[list[str]]
) -> None:
    results = [model(name, seconds=1.0) for name in "abc"] + [model("z", seconds=seconds)]
    assert rows(results, "Slow models") == found
    count = "1 model takes" if found else "0 models take"
    assert f"the median is 1.00 s; {count} more than 5 times as much" in fleet_page(results)


def test_the_furthest_is_first_and_models_without_figures_do_not_count() -> None:
    results = [model(name, peak=10) for name in "abcde"]
    results += [model("y", peak=100), model("z", peak=200), *(model(name) for name in "mno")]
    assert [row[0] for row in rows(results, "Memory")] == ["z", "y"]
    assert "Slow models" not in titles(results)


def test_passes_are_counted_by_models_the_most_first() -> None:
    results = [
        model("a", passes="p=1 q=5"), model("b", passes="p=3"), model("c", passes="q=2 r=1"),
        model("d"),
    ]  # fmt: skip
    assert rows(results, "What fires") == [
        ["p", "2", "67 %", "4", "3", "b"],
        ["q", "2", "67 %", "7", "5", "a"],
        ["r", "1", "33 %", "1", "1", "c"],
    ]
    assert "of 3 models that some pass rewrote" in fleet_page(results)
    assert "What fires" not in titles([model("a")])


def test_nodes_that_are_left_the_most_first() -> None:
    results = [
        model("a", nodes_before=10, nodes_after=5), model("b", nodes_before=4, nodes_after=4),
        model("c", nodes_before=10, nodes_after=0), model("d", nodes_before=0, nodes_after=0),
        model("e", nodes_before=5),
    ]  # fmt: skip
    assert rows(results, "Nodes") == [
        ["b", "4", "4", "100 %"], ["a", "10", "5", "50 %"], ["c", "10", "0", "0 %"]
    ]  # fmt: skip
    assert "at the median 50 % of the nodes are left" in fleet_page(results)


def test_names_and_reasons_are_no_markup() -> None:
    text = fleet_page([model("<a>", "failed", reason="<b>")])
    assert "&lt;a&gt;" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text.replace("<body", "")


def test_long_tables_are_cut() -> None:
    results = [model(f"m{at:03}", nodes_before=10, nodes_after=5) for at in range(201)]
    assert len(rows(results, "Nodes")) == 200
    assert "the first 200 of 201 rows are shown" in fleet_page(results)
    assert "rows are shown" not in fleet_page(results[:200])


def test_the_page_as_a_whole() -> None:
    results = [
        model("a", seconds=1.0, peak=100, passes="p=1 q=5", nodes_before=10, nodes_after=5),
        model("b", seconds=1.0, peak=100, passes="p=3", nodes_before=10, nodes_after=0),
        model("c", seconds=9.0, peak=600, nodes_before=8, nodes_after=8),
        model("x/d", "failed", reason="x/d: no d", verified=False),
    ]
    text = read(fleet_page(results)).text
    assert text.partition("Nodes Summary ")[2] == (
        "4 models, 11.00 s of work not verified: 1 model models by status status models done 3 "
        "failed 1 What failed what failed models status reason for example 1 failed MODEL: no "
        "MODEL x/d Slow models the median is 1.00 s; 1 model takes more than 5 times as much slow"
        " models model takes over the median status c 9.00 s 9.0 done Memory the median is 100 B;"
        " 1 model takes more than 5 times as much memory model takes over the median status c 600"
        " B 6.0 done What fires of 2 models that some pass rewrote what fires pass models share "
        "rewrites most in one in p 2 100 % 4 3 b q 1 50 % 5 5 a Nodes at the median 50 % of the "
        "nodes are left nodes model before after left c 8 8 100 % a 10 5 50 % b 10 0 0 %"
    )
