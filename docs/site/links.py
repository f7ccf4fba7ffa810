"""Check the built site: each link leads to a page and a place in it, each pass has its page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs.site.examples import ROOT
from docs.site.pass_pages import FOLDERS


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: dict[str, None] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.update(name for name in (found.get("id"), found.get("name")) if name)
        for name in ("href", "src"):
            link = found.get(name)
            if link:
                self.links[link] = None


def broken_links(site: Path) -> Iterator[str]:
    """Yield a sentence for each link within the site that leads nowhere."""
    read = cache(lambda path: _Page(path.read_text(encoding="utf-8")))
    for path in sorted(site.rglob("*.html")):
        for link in read(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            here = path.relative_to(site)
            if not target.is_file():
                yield f"{here}: {link} leads to no file"
                continue
            place = unquote(parts.fragment)
            if place and target.suffix == ".html" and place not in read(target).ids:
                yield f"{here}: {link} leads to no place in {target.name}"


def missing_passes(site: Path) -> Iterator[str]:
    """Yield a sentence for each file of a pass without a page."""
    for folder in FOLDERS:
        for path in sorted((ROOT / "tiered" / folder).rglob("*.py")):
            if path.name.startswith("_"):
                continue
            if not (site / "passes" / f"{path.stem}.html").is_file():
                yield f"the pass {path.stem} has no page"
