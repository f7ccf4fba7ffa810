"""The mutants that `make mutants` tries are changes that a test can notice."""

from pathlib import Path

import pytest

from tests import mutants

SOURCE = """
def chosen(a, b, c):
    if a < b and c:
        return True
    return a if b in c else 3
"""
EXPECTED = [
    "if False:", "if (c):", "if (a < b):", "if (a <= b) and c:", "return False",
    "return a if False else 3", "return a if (b not in c) else 3", "return a if b in c else (4)",
]  # fmt: skip


def test_each_mutant_changes_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(SOURCE, encoding="utf-8")
    made = {each.applied_to(SOURCE.encode()).decode() for each in mutants.mutants_of(module)}
    changed = {
        line.strip()
        for text in made
        for line, was in zip(text.splitlines(), SOURCE.splitlines(), strict=True)
        if line != was
    }
    assert changed == set(EXPECTED)


def test_the_nearest_tests_come_first() -> None:
    nearest = list(mutants.tests_for("tiered/analysis/layout/sizes.py"))
    assert nearest[0] == ("file", ["tests/analysis/layout/test_sizes.py"])
    assert [near for near, _ in nearest] == ["file", "folder", "named"]
