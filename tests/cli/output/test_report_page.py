"""The page of a command that prints a report: text, tables and charts."""

import base64
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from tiered.cli.output.report_page import MOST, _Recorder, write_report
from tiered.cli.output.tables import print_table
from tiered.support.errors import ModelError


def show(console: Console) -> None:
    console.print("the model has <b>5</b> nodes", soft_wrap=True)
    console.print()
    print_table(console, "Operators", ("operator", "nodes"), [("Add", 3), ("Mul", None)])
    console.print("  and 2 more")
    print_table(console, "Second", ("name",), [("x",)])


def written(folder: Path, charts: dict[str, str] | None = None) -> str:
    path = folder / "page.html"
    write_report(str(path), "inspect", ["a/b/model.onnx", "other.onnx"], show, charts)
    return path.read_text(encoding="utf-8")


def test_a_page_has_the_text_and_the_tables_in_order(tmp_path: Path) -> None:
    page = written(tmp_path)
    assert "tiered inspect model.onnx other.onnx" in page
    assert "the model has &lt;b&gt;5&lt;/b&gt; nodes" in page
    order = ("Summary", "the model has", "and 2 more", "Operators", "Add", "Second")
    places = [page.rindex(word) for word in order]
    assert places == sorted(places)
    assert "a/b" not in page


def test_charts_follow_the_summary(tmp_path: Path) -> None:
    svg = "<svg>é</svg>"
    page = written(tmp_path, {"Live bytes": svg})
    image = base64.b64encode(svg.encode()).decode()
    assert page.rindex("the model has") < page.rindex("Live bytes") < page.rindex("Operators")
    assert image in page


def test_only_bold_texts_are_titles() -> None:
    recorder = _Recorder()
    recorder.print(Text("a red line", style="red"), " ", "last")
    recorder.print(Text("a title", style="bold"))
    recorder.print("below")
    summary, titled = ["a red line", "last"], ["below"]
    assert recorder.sections == [("Summary", summary, None), ("a title", titled, None)]


def test_without_a_file_nothing_is_shown() -> None:
    def fails(console: Console) -> None:
        pytest.fail("it is not called")

    write_report(None, "inspect", [], fails)


@pytest.mark.parametrize(("count", "says"), [(MOST, False), (MOST + 1, True)])
def test_a_long_table_is_cut(tmp_path: Path, count: int, says: bool) -> None:
    path = tmp_path / "page.html"
    rows = [(f"row{number}", number) for number in range(count)]
    write_report(
        str(path),
        "diff",
        ["m.onnx"],
        lambda console: print_table(console, "Rows", ("name", "n"), rows),
    )
    page = path.read_text(encoding="utf-8")
    assert f"row{MOST - 1}" in page
    assert f"row{MOST}" not in page
    assert (f"The first {MOST:,} of {MOST + 1:,} rows are shown." in page) is says


def test_a_report_without_text_has_no_summary(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_report(
        str(path), "diff", ["m.onnx"], lambda console: print_table(console, "Only", ("n",), [(1,)])
    )
    page = path.read_text(encoding="utf-8")
    assert "Only" in page
    assert "Summary" not in page


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        write_report(str(tmp_path / "none" / "page.html"), "diff", ["m.onnx"], show)
