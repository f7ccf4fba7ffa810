"""One file, one pass: its name, its law, its test, its place in the pipeline."""

import ast
import re

import pytest

from tests.house.reasons import said_because, said_in_tests, skip_reasons, strings, unmet
from tests.house.test_mirrored import mirrored
from tests.house.tree import (
    PACKAGE,
    PASS_FOLDERS,
    ROOT,
    PassFile,
    helper_files,
    parse,
    pass_files,
)

SHARED = helper_files() + [
    file
    for folder in ("analysis/layout", "rewriter/idioms", "analysis/legalization", "runtime/fold")
    for file in sorted((PACKAGE / folder).rglob("*.py"))
]
"""What is no pass, and gives reasons for which passes leave nodes alone."""

DECORATORS = {"rewrite", "function_pass", "module_pass"}

Trees = dict[PassFile, ast.Module]


@pytest.fixture(scope="module")
def trees() -> Trees:
    """Return the passes with what their files hold."""
    return {file: file.parse() for file in pass_files()}


def _decorators(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set()
    calls = [call.func if isinstance(call, ast.Call) else call for call in node.decorator_list]
    return {call.id for call in calls if isinstance(call, ast.Name)}


def _passes(tree: ast.Module) -> list[ast.FunctionDef | ast.ClassDef]:
    return [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _decorators(node) & DECORATORS
    ]


def test_a_file_defines_the_pass_of_its_own_name(trees: Trees) -> None:
    defined = {file: [node.name for node in _passes(tree)] for file, tree in trees.items()}
    assert {str(file): names for file, names in defined.items() if names != [file.name]} == {}


def test_the_law_is_on_the_first_line(trees: Trees) -> None:
    laws = {
        file: (ast.get_docstring(tree, clean=False) or "").split("\n")[0]
        for file, tree in trees.items()
    }
    without = [str(file) for file, law in laws.items() if not law.strip()]
    assert without == [], "the first line of the file says what the pass does"
    rewrites = [
        file
        for file, tree in trees.items()
        if any("rewrite" in _decorators(node) for node in _passes(tree))
    ]
    without = [str(file) for file in rewrites if "=>" not in laws[file]]
    assert without == [], "the law of a rewrite is: before  =>  after"


def test_a_pass_says_what_it_does_in_a_sentence(trees: Trees) -> None:
    passes = {str(file): _passes(tree) for file, tree in trees.items()}
    assert [file for file, nodes in passes.items() if not all(map(ast.get_docstring, nodes))] == []


def test_a_pass_has_its_test_at_the_same_place() -> None:
    tests = [file.test for file in pass_files()]
    missing = [str(path.relative_to(ROOT)) for path in tests if not path.exists()]
    assert missing == [], "write these files"


def test_each_guard_of_a_pass_has_a_reason_of_its_own(trees: Trees) -> None:
    reasons = {str(file): list(skip_reasons(tree)) for file, tree in trees.items()}
    assert {file: texts for file, texts in reasons.items() if len(texts) > len(set(texts))} == {}


def test_every_skip_has_a_model_that_meets_it(trees: Trees) -> None:
    missing = {
        file.test.name: unmet(reasons, said_because(parse(file.test)))
        for file, tree in trees.items()
        if file.test.exists() and (reasons := list(skip_reasons(tree)))
    }
    missing = {name: reasons for name, reasons in missing.items() if reasons}
    assert missing == {}, "write assert_unchanged(..., because=...) in these files"


def test_every_skip_of_what_passes_share_has_a_model_that_meets_it() -> None:
    missing = {
        str(file): unmet(list(skip_reasons(parse(file))), said_in_tests()) for file in SHARED
    }
    assert {file: reasons for file, reasons in missing.items() if reasons} == {}


def test_a_pass_has_its_place_in_the_default_pipeline() -> None:
    listed = " ".join(strings(parse(PACKAGE / "pipeline" / "default.py")))
    placed = set(re.findall(r"\w+", listed))
    missing = [file.name for file in pass_files() if file.name not in placed]
    assert missing == [], "add these to pipeline/default.py, at their level or parked"


def test_pass_names_are_unique() -> None:
    names = [file.name for file in pass_files()]
    assert [name for name in names if names.count(name) > 1] == []


def test_tests_of_passes_have_a_pass() -> None:
    expected = {file.test for file in pass_files()}
    for name in ("test_variants.py", "test_corners.py"):
        expected |= {test.with_name(name) for test in expected}
    expected |= {mirrored(path) for path in helper_files()}
    found = [
        path for folder in PASS_FOLDERS for path in (ROOT / "tests" / folder).rglob("test_*.py")
    ]
    assert [path for path in found if path not in expected] == []
