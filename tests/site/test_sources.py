"""The sources of the site: documents with their links, docstrings, and the reference."""

import tiered
from docs.site.docstrings import as_rst
from docs.site.markdown import paragraphs, text
from docs.site.reference import reference_pages
from docs.site.sources import placed_documents


def test_links_lead_to_the_places_on_the_site() -> None:
    found = dict(placed_documents())
    assert "](../guides.md)" in found["project/readme.md"]
    assert "](project/contributing.md)" in found["write_a_pass.md"]
    assert "](../write_a_pass.md)" in found["project/rules_for_rules.md"]


def test_each_document_and_tutorial_is_listed_on_the_front_page() -> None:
    found = dict(placed_documents())
    listed = found["index.md"].split()
    names = [name.rpartition(".")[0] for name in found if name != "index.md"]
    assert [name for name in names if name not in listed and f"<{name}>" not in listed] == []


def test_the_reference_has_each_public_name() -> None:
    page = dict(reference_pages())["tiered.md"]
    assert [name for name in tiered.__all__ if f":: {name}\n" not in page] == []


def test_the_help_of_each_command_is_there() -> None:
    page = dict(reference_pages())["command_line.md"]
    assert "## tiered optimize\n" in page
    assert "--html" in page


def test_an_example_in_a_docstring_becomes_a_block() -> None:
    lines = ["Do it.", "", "    a * b", "", "Then `c * d` and e * f.", "", "Args:", "    x: one."]
    assert as_rst(lines) == [
        "Do it.", "", "::", "", "    a * b", "", "Then `c * d` and e \\* f.", "", "Args:",
        "    x: one.",
    ]  # fmt: skip


def test_text_of_a_docstring_is_no_markup() -> None:
    assert text("a_b * `c_d` <x> | y") == r"a\_b \* `c_d` \<x\> \| y"
    assert paragraphs("One\nline.\n\n- a\n- b\n\nArgs:\n    x: y") == "One line.\n\n- a\n- b"
