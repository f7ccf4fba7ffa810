"""The sources of the site in one folder: the documents, and what is generated."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from docs.site.commands import as_typed
from docs.site.examples import ROOT
from docs.site.indexes import index_pages
from docs.site.pass_pages import own_passes, pass_page
from docs.site.reference import reference_pages

DOCS = ROOT / "docs"
OUTSIDE = {
    "docs/site/index.md": "index.md",
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "tiered/function_passes/README.md": "project/rules_for_rules.md",
    "examples/third_party_pass/README.md": "project/third_party_pass.md",
}
"""Documents that are elsewhere on the site than in the repository."""
TEMPLATES = ROOT / "tiered" / "support" / "pages" / "templates"
STATIC = ("diagram.js", "diagram.css")
"""Files of the pages of runs that the pages of passes use too."""
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


_NAMED = re.compile(r"\[([\w./-]+\.md)\]\(([^)#\s]+\.md)((?:#[^)]*)?)\)")
"""A link whose text is the name of a file."""


def write_sources(target: Path) -> None:
    """Write the sources of the site to a folder, which is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "_static").mkdir(parents=True)
    for source in (*sorted((DOCS / "site" / "static").iterdir()), *map(TEMPLATES.joinpath, STATIC)):
        shutil.copyfile(source, target / "_static" / source.name)
    for source in sorted(DOCS.glob("*.svg")):
        shutil.copyfile(source, target / source.name)
    for folder, pages in (
        ("", placed_documents()),
        ("passes", _pass_pages()),
        ("passes", index_pages(own_passes())),
        ("reference", reference_pages()),
    ):
        for name, page in pages:
            file = target / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page, encoding="utf-8")


def placed_documents() -> Iterator[tuple[str, str]]:
    """Yield the place of each document on the site, and its text with links between places."""
    found = {
        path: path.relative_to(DOCS).as_posix()
        for pattern in ("*.md", "tutorials/*")
        for path in sorted(DOCS.glob(pattern))
    }
    found |= {ROOT / path: place for path, place in OUTSIDE.items()}
    images = {path: path.name for path in DOCS.glob("*.svg")}
    for source, place in found.items():
        yield place, _relinked(source, found | images)


def _relinked(source: Path, places: dict[Path, str]) -> str:
    """Return a document whose links lead to the places on the site.

    Raises:
        ValueError: a link leads to no page of the site.
    """

    def replaced(found: re.Match[str]) -> str:
        if "://" in found[2] or found[2].startswith("/"):
            return found[0]
        place = places.get((source.parent / found[2]).resolve())
        if place is None:
            raise ValueError(f"{source}: the link to {found[2]} leads to no page of the site")
        here = Path(places[source]).parent
        return f"{found[1]}{Path(os.path.relpath(place, here)).as_posix()}{found[3]}"

    text = _titled(as_typed(source.read_text(encoding="utf-8")), source.parent)
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if at % 2 else _LINK.sub(replaced, part) for at, part in enumerate(parts))


def _titled(text: str, folder: Path) -> str:
    """Return a document whose links have the titles of the pages, not the names of the files."""

    def replaced(found: re.Match[str]) -> str:
        path = folder / found[2]
        if not path.is_file():
            return found[0]
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        return f"[{title}]({found[2]}{found[3]})"

    return _NAMED.sub(replaced, text)


def _pass_pages() -> Iterator[tuple[str, str]]:
    for info in own_passes():
        yield f"{info.name}.md", pass_page(info)
