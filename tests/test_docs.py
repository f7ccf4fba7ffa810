"""The snippets of the documentation run, each file from first to last, and print what it says."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.registered import passes_forgotten, rules_forgotten

DOCS = Path(__file__).resolve().parent.parent / "docs"
SNIPPET = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
"""A snippet, and what it is said to print."""
RULES = DOCS.parent / "tiered" / "function_passes" / "README.md"
TOUR = DOCS / "tour.md"
"""Its programs write files: `tests/cli/test_readme.py` runs them in a folder of their own."""
WITH_CODE = [*sorted({*DOCS.glob("*.md")} - {TOUR}), *sorted(DOCS.glob("tutorials/*.md"))]
PAGES = [*WITH_CODE, TOUR, *sorted(DOCS.parent.glob("*.md")), RULES]


@pytest.fixture
def registries() -> Iterator[None]:
    """Forget the rules and the passes that a page registers."""
    with rules_forgotten(), passes_forgotten():
        yield


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: str(path.name))
def test_the_snippets_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A page may change both.
    monkeypatch.chdir(Path.cwd())
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = path.read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": path.stem}
    for found in SNIPPET.finditer(text):
        line = text.count("\n", 0, found.start(1))
        # Errors then name the line of the document.
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile("\n" * line + found[1], str(path), "exec"), space)
        if found[2] is not None:
            assert _without_times(said.getvalue()) == _without_times(found[2])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS.parent).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_rules_name_tests_that_exist() -> None:
    tests = DOCS.parent / "tests"
    named = re.findall(r"`(\w+/test_\w+\.py)`", RULES.read_text(encoding="utf-8"))
    places = (tests, tests / "function_passes")
    assert [file for file in named if not any((place / file).exists() for place in places)] == []


def _without_times(text: str) -> str:
    return re.sub(r"\d+\.\d+ ms", "# ms", text)
