"""A module of more than 80 lines has its own tests in the same place of tests/; a list shrinks."""

from pathlib import Path

from tests.house.tree import PACKAGE, PASS_FOLDERS, ROOT

LIST = Path(__file__).with_name("not_mirrored.txt")
"""A line a module without tests of its own. Where one gets them, the line goes; a new module gets
them at once."""

MOST_LINES = 80
BUILT = PACKAGE / "passes" / "index" / "table.py"


def mirrored(path: Path) -> Path:
    """Return the place of a module's own tests."""
    module = path.relative_to(PACKAGE)
    return ROOT / "tests" / module.parent / f"test_{module.stem.strip('_')}.py"


def _without_tests() -> list[str]:
    """Return the modules of more than 80 lines, other than passes, without tests of their own."""
    modules = [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in PASS_FOLDERS
        and path.name != "__init__.py"
        and path != BUILT
        and len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    ]
    return [path.relative_to(ROOT).as_posix() for path in modules if not mirrored(path).exists()]


def test_the_list_has_every_module_without_its_own_tests_and_no_other() -> None:
    assert _without_tests() == LIST.read_text(encoding="utf-8").splitlines()
