"""Reads a page as a browser would, without one."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "hr", "link", "img"}


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        ids, links: all ids, and all targets of links.
        tags: every element that was opened.
        text: what is shown, without scripts and styles.
        scripts: the contents of script elements; `data` is the JSON among them.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.data: dict[str, Any] = {}
        self.sources: list[str] = []
        self._text: list[str] = []
        self._open: list[str] = []
        self._is_json = False
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    @property
    def text(self) -> str:
        return " ".join("".join(self._text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self._text.append(" ")
        if "id" in found:
            self.ids.append(found["id"])
        self.links += [found[name] for name in ("href",) if name in found]
        self.sources += [found[name] for name in ("src", "data", "action") if name in found]
        self.labels += [
            word
            for name in ("aria-labelledby", "aria-describedby", "for")
            for word in found.get(name, "").split()
        ]
        if tag not in VOID:
            self._open.append(tag)
        self._is_json = found.get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        assert [tag] == self._open[-1:], f"</{tag}> closes another element"
        self._open.pop()
        self._is_json = False

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            self.scripts.append(data)
            if self._is_json:
                self.data = json.loads(data)
        elif inside != "style":
            self._text.append(data)


def read(html: str) -> Page:
    """Return a page, checked for what every page holds."""
    page = Page(html)
    assert len(page.ids) == len(set(page.ids)), "an id occurs twice"
    known = set(page.ids)
    assert [link for link in page.links if not link.startswith("#") or link[1:] not in known] == []
    assert [label for label in page.labels if label not in known] == []
    # Pictures are in the page itself.
    assert [each for each in page.sources if not each.startswith("data:image/")] == []
    assert {"header", "nav", "main", "h1", "title"} <= set(page.tags)
    assert "http://" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in html
    return page
