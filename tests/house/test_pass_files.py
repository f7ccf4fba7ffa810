"""One file, one pass: its name, its law, its test, its place in the pipeline."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.tree import PACKAGE, PASS_FOLDERS, ROOT, PassFile, parse, pass_files

DECORATORS = {"rewrite", "function_pass", "module_pass"}

each_pass = pytest.mark.parametrize("file", pass_files(), ids=str)


def _decorators(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set()
    calls = [call.func if isinstance(call, ast.Call) else call for call in node.decorator_list]
    return {call.id for call in calls if isinstance(call, ast.Name)}


def _strings(node: ast.AST) -> Iterator[str]:
    for found in ast.walk(node):
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            yield found.value


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
def test_every_skip_has_a_model_that_meets_it(file: PassFile) -> None:
    met = _because(file) if file.test.exists() else set()
    reasons = _skip_reasons(file)
    missing = [text for text in reasons if not any(_is_part_of(part, text) for part in met)]
    assert missing == [], f"write assert_unchanged(..., because=...) in {file.test.name}"


def _skip_reasons(file: PassFile) -> Iterator[str]:
    """Yield the text of each Skip, which may hold {} for the values that go in."""
    for node in ast.walk(file.parse()):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Skip":
            text = node.args[0]
            assert isinstance(text, ast.Constant), "values go in arguments of Skip, not in its text"
            yield str(text.value)


def _because(file: PassFile) -> set[str]:
    """Return what the test says as `because`, as a keyword or as a parameter of the test."""
    texts: set[str] = set()
    for node in ast.walk(parse(file.test)):
        if isinstance(node, ast.keyword) and node.arg == "because":
            texts.update(_strings(node.value))
        elif isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                texts.update(_strings(decorator))
    return texts - {""}


def _is_part_of(text: str, reason: str) -> bool:
    """Tell whether the text is what a reason says, or a part of it, with any values filled in."""
    pieces = [re.escape(piece) for piece in re.split(r"\{[^{}]*\}", reason)]
    filled_in = re.search(".+".join(pieces), text) is not None
    return filled_in or text in reason


@each_pass
def test_a_pass_has_its_place_in_the_default_pipeline(file: PassFile) -> None:
    listed = " ".join(_strings(parse(PACKAGE / "pipeline" / "default.py")))
    has_place = file.name in re.findall(r"\w+", listed)
    assert has_place, f"add {file.name} to pipeline/default.py, at its level or parked"


def test_pass_names_are_unique() -> None:
    names = [file.name for file in pass_files()]
    assert [name for name in names if names.count(name) > 1] == []


def test_tests_of_passes_have_a_pass() -> None:
    expected = {file.test for file in pass_files()}
    found = [
        path for folder in PASS_FOLDERS for path in (ROOT / "tests" / folder).rglob("test_*.py")
    ]
    assert [path for path in found if path not in expected] == []
