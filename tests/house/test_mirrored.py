"""A module of more than 80 lines has its own tests, in the same place of tests/."""

from pathlib import Path

from tests.house.tree import PACKAGE, ROOT, pass_files

MOST_LINES = 80
BUILT = PACKAGE / "passes" / "index" / "table.py"


def mirrored(path: Path) -> Path:
    """Return the place of a module's own tests."""
    module = path.relative_to(PACKAGE)
    return ROOT / "tests" / module.parent / f"test_{module.stem.strip('_')}.py"


def test_each_long_module_has_its_own_tests() -> None:
    """Passes have tests at their own places; `test_pass_files` looks for them."""
    passes = {file.path for file in pass_files()}
    modules = [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path not in passes
        and path.name != "__init__.py"
        and path != BUILT
        and len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    ]
    without = [path for path in modules if not mirrored(path).exists()]
    assert [path.relative_to(ROOT).as_posix() for path in without] == []
