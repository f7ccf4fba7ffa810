"""Change one token of the project at a time, and look whether a test notices: `make mutants`.

    python -m tests.mutants --count 200 --seed 0 --state build/mutants.json

Each mutant is tried on a copy of the tree: by the test file that mirrors the module, then by the
tests of its folder, then by the test files that import the module. One that all of them pass is
printed with its line: either a test is missing, or the change means the same. A killed run goes on
where it stopped, from its state file.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
COPIED: Final = ("tiered", "tests", "examples", "docs", "benchmarks", "pyproject.toml", "README.md")
MOST_SECONDS: Final = 300

_TURNED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change of a module.

    Attributes:
        path: the module, from the root of the project.
        line: where it is.
        start: the offset of the text that goes, in bytes.
        end: its end.
        new: what takes its place.
    """

    path: str
    line: int
    start: int
    end: int
    new: str

    def applied_to(self, source: bytes) -> bytes:
        """Return the module with the change."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a module: comparisons, conjuncts, conditions, constants, results."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        for old, new in _changes(node):
            assert old.end_lineno is not None
            assert old.end_col_offset is not None
            yield Mutant(
                path.relative_to(ROOT).as_posix(),
                old.lineno,
                starts[old.lineno - 1] + old.col_offset,
                starts[old.end_lineno - 1] + old.end_col_offset,
                new,
            )


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield expressions at a node with what may take their place."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            turned = _TURNED[type(operator)]()
            yield node, f"({ast.unparse(ast.Compare(left, [turned], [right]))})"
        case ast.BoolOp(op=operator, values=values):
            for at in range(len(values)):
                kept = [*values[:at], *values[at + 1 :]]
                rest = kept[0] if len(kept) == 1 else ast.BoolOp(operator, kept)
                yield node, f"({ast.unparse(rest)})"
        case ast.If(test=test) | ast.IfExp(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield test, "False"
        case ast.Return(value=ast.Constant(value=bool(value)) as constant):
            yield constant, str(not value)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield node, f"({value + 1})"


def chosen(count: int, seed: int) -> list[Mutant]:
    """Return random mutants of the package, as many for a module as it has places."""
    modules = sorted((ROOT / "tiered").rglob("*.py"))
    apart = {ROOT / "tiered" / "passes" / "index" / "table.py"}
    places = [each for path in modules if path not in apart for each in mutants_of(path)]
    return random.Random(seed).sample(places, count)


def tests_for(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield how near tests are to a module, and their places."""
    module = Path(path).relative_to("tiered")
    folder = Path("tests") / module.parent
    mirrored = folder / f"test_{module.stem.strip('_')}.py"
    if (ROOT / mirrored).exists():
        yield "file", [mirrored.as_posix()]
    own = sorted((ROOT / folder).glob("test_*.py")) if folder != Path("tests") else []
    if own:
        yield "folder", [test.relative_to(ROOT).as_posix() for test in own]
    name = ".".join(("tiered", *module.with_suffix("").parts)).removesuffix(".__init__")
    naming = [
        test.relative_to(ROOT).as_posix()
        for test in sorted((ROOT / "tests").rglob("test_*.py"))
        if name in test.read_text(encoding="utf-8") or module.stem in test.stem
    ]
    if naming:
        yield "named", naming


def fate(mutant: Mutant, copy: Path) -> str:
    """Return which tests notice a mutant: of its file, folder, those that name it; or none."""
    target = copy / mutant.path
    source = (ROOT / mutant.path).read_bytes()
    target.write_bytes(mutant.applied_to(source))
    try:
        return next((near for near, tests in tests_for(mutant.path) if _fails(tests, copy)), "none")
    finally:
        target.write_bytes(source)


def _fails(tests: list[str], copy: Path) -> bool:
    """Return whether one of the tests fails on the copy; one that hangs does."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)  # 5: there was no test


def _copied(folder: str) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, Path(folder) / name, ignore=ignored)
        else:
            shutil.copy(source, folder)
    return Path(folder)


def main() -> None:
    """Run the mutants that the state file lacks, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "mutants.json")
    options = parser.parse_args()
    known: dict[str, Any] = {}
    if options.state.exists():
        known = json.loads(options.state.read_text(encoding="utf-8"))
    options.state.parent.mkdir(parents=True, exist_ok=True)
    fates = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        copy = _copied(folder)
        for mutant in chosen(options.count, options.seed):
            place = f"{mutant.path}:{mutant.line} -> {mutant.new}"
            if place not in known:
                known[place] = fate(mutant, copy)
                options.state.write_text(json.dumps(known, indent=1), encoding="utf-8")
            fates[known[place]] += 1
            if known[place] == "none":
                print(f"survives: {place}", flush=True)
    near = sum(fates[name] for name in ("file", "folder"))
    print(f"{near} of {fates.total()} die by the nearest tests, {fates['named']} by others")


if __name__ == "__main__":
    main()
