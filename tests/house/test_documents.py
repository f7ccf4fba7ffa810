"""The documents on the site: their links lead to pages, and the front page lists each."""

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
