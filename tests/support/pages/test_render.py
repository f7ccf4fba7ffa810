import json
from pathlib import Path

import pytest

from tests.support.pages.reader import read
from tiered.support.errors import ModelError
from tiered.support.pages.render import check_page, page, script_json, short, visible, write_page
from tiered.support.pages.sections import Table, tables

HOSTILE = "</script><script>alert(1)</script><b onclick='x'>\"&amp;{{ 1 }}"


def test_text_stays_text() -> None:
    table = Table(HOSTILE, (HOSTILE, "b"), [(HOSTILE, 1)], HOSTILE)
    read_page = read(page(HOSTILE, [tables("Hostile", table, notes=[HOSTILE])]))
    assert read_page.text.count(HOSTILE) == 7  # title, h1, caption, header, cell, two notes
    assert read_page.tags.count("script") == 1


def test_json_cannot_end_its_element() -> None:
    text = script_json({"name": HOSTILE + "<!--"})
    assert not {"<", ">", "&"} & set(text)
    assert json.loads(text) == {"name": HOSTILE + "<!--"}


def test_invisible_characters_are_shown() -> None:
    assert visible("a\x00\u202eb\ud800 é\n") == "a\\u0000\\u202eb\\ud800 é\n"
    page("a\ud800b", []).encode("utf-8")


def test_a_long_name_is_cut_and_its_length_shown() -> None:
    assert short("n" * 200) == "n" * 200
    assert short("n" * 10_000) == "n" * 200 + "… (10,000 characters)"


@pytest.mark.parametrize(
    ("cell", "mark"),
    [
        (12, "number"), ("1,234", "number"), ("64.0 KiB", "number"), ("-287 (-100%)", "number"),
        ("1.2e-07", "number"), ("93.1%", "number"), ("0,2,1,3", ""), ("float32[2, 24]", ""),
        (None, ""), ("ok", ""), ("a name of more than 24 characters", "long"),
        ("x" * 24, ""), ("x" * 25, "long"),
    ],
)  # fmt: skip
def test_cells_are_marked_by_what_they_hold(cell: str | int | None, mark: str) -> None:
    html = page("t", [tables("T", Table("t", ("a", "b"), [("x", cell)]))])
    mark = f' class="{mark}"' if mark else ""
    shown = "" if cell is None else cell
    assert f"<td{mark}>{shown}</td>" in html


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    check_page("a.html")
    with pytest.raises(ModelError, match="no directory"):
        check_page(str(tmp_path / "absent" / "a.html"))
    with pytest.raises(ModelError, match="is a directory"):
        check_page(str(tmp_path))
    with pytest.raises(ModelError, match="cannot write"):
        write_page(str(tmp_path), "")
