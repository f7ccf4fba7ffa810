"""The sources of the site: docstrings, and the reference."""

import tiered
from docs.site.docstrings import as_rst
from docs.site.markdown import paragraphs, text
from docs.site.reference import reference_pages


def test_the_reference_has_each_public_name() -> None:
    page = dict(reference_pages())["tiered.md"]
    assert [name for name in tiered.__all__ if f":: {name}\n" not in page] == []


def test_the_help_of_each_command_is_there() -> None:
    page = dict(reference_pages())["command_line.md"]
    assert "## tiered optimize\n" in page
    assert "--html" in page


def test_an_example_in_a_docstring_becomes_a_block() -> None:
    lines = ["Do it.", "", "    a * b", "", "Then `c * d` and |e * f|.", "", "Args:", "    x: one."]
    assert as_rst(lines) == [
        "Do it.", "", "::", "", "    a * b", "", "Then `c * d` and \\|e \\* f\\|.", "", "Args:",
        "    x: one.",
    ]  # fmt: skip


def test_text_of_a_docstring_is_no_markup() -> None:
    assert text("a_b * `c_d` <x> | y") == r"a\_b \* `c_d` \<x\> \| y"
    assert paragraphs("One\nline.\n\n- a\n- b\n\nArgs:\n    x: y") == "One line.\n\n- a\n- b"
