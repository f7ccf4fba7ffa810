"""docs/architecture.md is a map: what it names is there, and every room is on it."""

import re
from pathlib import Path

from tests.house.tree import PACKAGE, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:tiered|tests)/[\w./]*)`", PAGE)))
MOST_FILES = 15


def _errand(question: str) -> list[Path]:
    """Return the places that the row of an errand names."""
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {question}"))
    return [ROOT / place for place in re.findall(r"`(tiered/[\w./]+)`", row)]


def test_every_place_on_the_map_is_there() -> None:
    assert [place for place in NAMED if not (ROOT / place).exists()] == []


def test_every_room_is_on_the_map() -> None:
    folders = ("analysis", "extensions", "graph", "numerics")
    parents = [PACKAGE, *(PACKAGE / folder for folder in folders)]
    rooms = {
        path for parent in parents for path in parent.iterdir() if (path / "__init__.py").exists()
    }
    missing = [room for room in rooms if f"`{room.relative_to(ROOT).as_posix()}/`" not in PAGE]
    assert missing == []


def test_a_folder_of_many_files_has_its_reason_on_the_map() -> None:
    _, _, reasons = PAGE.partition("## Folders of more than 15 files")
    crowded = {
        path.parent.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if len([file for file in path.parent.glob("*.py") if file.stem[0] != "_"]) > MOST_FILES
    }
    named = {place.rstrip("/").rpartition("/")[2] for place in re.findall(r"`([\w/]+)`", reasons)}
    assert [folder for folder in crowded if folder.rpartition("/")[2] not in named] == []


def test_contexts_decide_where_the_map_says() -> None:
    decide, context = _errand("Change how a context decides")
    assert "\ndef decide(" in decide.read_text(encoding="utf-8")
    assert "\nclass PassContext" in context.read_text(encoding="utf-8")


def test_instruments_are_added_where_the_map_says() -> None:
    folder, protocol = _errand("Add an instrument")
    assert (folder / "timing.py").exists()
    assert "\nclass Instrument(Protocol)" in protocol.read_text(encoding="utf-8")


def test_shape_rules_are_added_where_the_map_says() -> None:
    (folder,) = _errand("Add a shape rule")
    rules = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    for operator in ("Conv", "Reshape", "MatMul", "Loop"):
        assert f'"{operator}"' in rules


def test_the_glossary_is_sorted_and_says_each_word_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][1:]
    assert words == sorted(words, key=str.lower)
    assert len(words) == len(set(words))
