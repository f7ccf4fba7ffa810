"""One file, one pass: its name, its law, its test, its place in the pipeline."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.reasons import said_because, said_in_tests, skip_reasons, strings, unmet
from tests.house.tree import PACKAGE, PASS_FOLDERS, ROOT, PassFile, parse, pass_files

SHARED = [
    file
    for folder in ("analysis/layout", "rewriter/idioms", "analysis/legalization", "runtime/fold")
    for file in sorted((PACKAGE / folder).rglob("*.py"))
]
"""What is no pass, and gives reasons for which passes leave nodes alone."""

DECORATORS = {"rewrite", "function_pass", "module_pass"}

each_pass = pytest.mark.parametrize("file", pass_files(), ids=str)


def _decorators(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set()
    calls = [call.func if isinstance(call, ast.Call) else call for call in node.decorator_list]
    return {call.id for call in calls if isinstance(call, ast.Name)}


@each_pass
def test_a_file_defines_the_pass_of_its_own_name(file: PassFile) -> None:
    defined = [node for node in file.parse().body if _decorators(node) & DECORATORS]
    names = [node.name for node in defined if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert names == [file.name]


@each_pass
def test_the_law_is_on_the_first_line(file: PassFile) -> None:
    tree = file.parse()
    docstring = ast.get_docstring(tree, clean=False) or ""
    law = docstring.split("\n")[0]
    assert law.strip(), "the first line of the file says what the pass does"
    if any("rewrite" in _decorators(node) for node in tree.body):
        assert "=>" in law, "the law of a rewrite is: before  =>  after"


@each_pass
def test_a_pass_says_what_it_does_in_a_sentence(file: PassFile) -> None:
    for node in file.parse().body:
        if _decorators(node) & DECORATORS:
            assert isinstance(node, ast.FunctionDef | ast.ClassDef)
            assert ast.get_docstring(node)


@each_pass
def test_a_pass_has_its_test_at_the_same_place(file: PassFile) -> None:
    assert file.test.exists(), f"write {file.test.relative_to(ROOT)}"


@each_pass
def test_each_guard_of_a_pass_has_a_reason_of_its_own(file: PassFile) -> None:
    reasons = list(skip_reasons(file.parse()))
    assert [text for text in reasons if reasons.count(text) > 1] == []


@each_pass
def test_every_skip_has_a_model_that_meets_it(file: PassFile) -> None:
    met = said_because(parse(file.test)) if file.test.exists() else set()
    missing = unmet(list(skip_reasons(file.parse())), met)
    assert missing == [], f"write assert_unchanged(..., because=...) in {file.test.name}"


@pytest.mark.parametrize("file", SHARED, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_skip_of_what_passes_share_has_a_model_that_meets_it(file: Path) -> None:
    assert unmet(list(skip_reasons(parse(file))), said_in_tests()) == []


@each_pass
def test_a_pass_has_its_place_in_the_default_pipeline(file: PassFile) -> None:
    listed = " ".join(strings(parse(PACKAGE / "pipeline" / "default.py")))
    has_place = file.name in re.findall(r"\w+", listed)
    assert has_place, f"add {file.name} to pipeline/default.py, at its level or parked"


def test_pass_names_are_unique() -> None:
    names = [file.name for file in pass_files()]
    assert [name for name in names if names.count(name) > 1] == []


def test_tests_of_passes_have_a_pass() -> None:
    expected = {file.test for file in pass_files()}
    expected |= {test.with_name("test_variants.py") for test in expected}
    found = [
        path for folder in PASS_FOLDERS for path in (ROOT / "tests" / folder).rglob("test_*.py")
    ]
    assert [path for path in found if path not in expected] == []
