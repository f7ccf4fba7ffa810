"""Docstrings, Skip reasons, errors and pages use the field's terms, in plain English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import PACKAGE, ROOT, parse

BETTER = {
    r"[Tt]ells? whether": "Return whether",
    r"an? texts?": "a string, or the thing itself: a model, a message, an edit",
    r"picture": "image, chart",
    r"of which": "two sentences, or its",
    r"nobody": "no user, no caller, none",
    r"somebody": "a user, a caller",
    r"whoever": "a user, a caller",
    r"speaks? of": "names, mentions",
    r"turns": "iterations, trip count",
    r"told": "reported, inferred, known",
    r"tells? apart": "distinguish",
    r"whom": "two sentences",
    r"anybody": "a user, a caller",
    r"all the same": "nevertheless, or nothing",
    r"anew": "again, new",
    r"for want of": "without",
    r"mends?": "fix, replace",
    r"misjudged": "unsound",
    r"says? of itself": "its attributes, its metadata",
    r"speak(?:s|ing)": "names, uses",
    r"strands?": "cost, tensor",
    r"so many": "`count`, this number of, the number",
    r"who (?:else|reads)": "consumers, users",
    r"younger": "newer",
}
"""Words that this project does not use, each with what to write instead."""

WORDS = re.compile(rf"\b(?:{'|'.join(BETTER)})\b")

NOT_YET: tuple[str, ...] = ()
"""Folders of `tiered/` and pages that still have such words. The list may shrink, never grow."""


def _folder(path: Path) -> str:
    place = path.relative_to(ROOT)
    is_code = place.parts[0] == "tiered" and len(place.parts) > 2
    return place.parts[1] if is_code else place.as_posix()


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, or the strings of a module with their lines."""
    if path.suffix == ".md":
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        return
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, line


def _files() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *PACKAGE.rglob("*.md")]
    return sorted([*pages, *PACKAGE.rglob("*.py")])


@pytest.mark.parametrize("folder", sorted({_folder(path) for path in _files()} - set(NOT_YET)))
def test_words_are_the_terms_of_the_field(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()} (better: {_better(line)})"
        for path in _files()
        if _folder(path) == folder
        for number, line in _strings(path)
        if WORDS.search(line)
    ]
    assert found == []


def _better(line: str) -> str:
    return next(better for word, better in BETTER.items() if re.search(rf"\b{word}\b", line))


def test_folders_on_the_list_have_such_words_still() -> None:
    found = {_folder(path) for path in _files() for _, line in _strings(path) if WORDS.search(line)}
    assert found == set(NOT_YET)
