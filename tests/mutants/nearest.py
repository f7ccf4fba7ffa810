"""Which test files are near a module: its own, those of its folder, and of its room."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.sites import Mutant


def tests_for(
    mutant: Mutant, most: int, root: Path, *, room: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield how near tests are to a mutant, and their files.

    Args:
        mutant: the change.
        most: how many files of the folder are taken; its own comes besides.
        root: the tree that the tests are in.
        room: go on with as many files of the folders above.

    Yields:
        ("file", [the test file that mirrors the module]), if there is one; ("folder", files) of the
        nearest folder with tests; ("room", files) of the folders above it in the same room. Those
        that name the module or what is around the change come first, after `test_variants.py`,
        which is of all modules of the folder.
    """
    module = Path(mutant.path).relative_to("tiered")
    folder = Path("tests") / module.parent
    mirrored = folder / f"test_{module.stem.strip('_')}.py"
    if (root / mirrored).exists():
        yield "file", [mirrored.as_posix()]
    found: dict[str, list[Path]] = {"folder": [], "room": []}
    near = "folder"
    while folder != Path("tests"):
        files = [path.relative_to(root) for path in (root / folder).glob("test_*.py")]
        found[near] += [path for path in files if path != mirrored]
        near = "room" if files else near
        folder = folder.parent
    for near, paths in found.items():
        paths.sort(
            key=lambda path: (path.stem != "test_variants", -_nearness(root / path, mutant), path)
        )
        if paths and (near == "folder" or room):
            yield near, [path.as_posix() for path in paths[:most]]


def _nearness(test: Path, mutant: Mutant) -> int:
    """Return how much a test file speaks of the module and of the scopes around the change."""
    text = test.read_text(encoding="utf-8")
    module = Path(mutant.path).with_suffix("")
    stem = module.stem.strip("_")
    names = [name.strip("_") for name in mutant.scopes if not name.startswith("__")]
    found = sum(3 for name in names if re.search(rf"\b{re.escape(name)}\b", text))
    found += 4 * (".".join(module.parts) in text)
    found += 3 * (stem in test.stem)
    return found + 2 * bool(re.search(rf"\b{re.escape(stem)}\b", text))
