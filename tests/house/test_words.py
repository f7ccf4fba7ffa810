"""Docstrings, Skip reasons, errors and pages use the field's terms, in plain English."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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

BETWEEN = re.compile(r"""(["'])\s+\w?\1|\\n""")
"""What is between the parts of a string, and between its lines, in the text of a module."""


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, or the strings of a module with their lines."""
    if path.suffix == ".md":
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        return
    if not WORDS.search(
        BETWEEN.sub(lambda found: "" if found[1] else " ", path.read_text("utf-8"))
    ):
        return  # to parse takes long
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, line


def _files() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *PACKAGE.rglob("*.md")]
    return sorted([*pages, *PACKAGE.rglob("*.py")])


def test_words_are_the_terms_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()} (better: {_better(line)})"
        for path in _files()
        for number, line in _strings(path)
        if WORDS.search(line)
    ]
    assert found == []


def _better(line: str) -> str:
    return next(better for word, better in BETTER.items() if re.search(rf"\b{word}\b", line))


def test_a_word_in_two_parts_of_a_string_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text('A = (\n    "one of "\n    f"which"\n)\nB = "first\\nnobody"\n')
    assert [line for _, line in _strings(path) if WORDS.search(line)] == ["nobody", "one of which"]
