"""What the house tests look at: the files of the repository, and the passes among them."""

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tiered"
PASS_FOLDERS = ("function_passes", "module_passes")


@dataclass(frozen=True)
class PassFile:
    """A file that defines one pass."""

    path: Path

    def __str__(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix()

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def test(self) -> Path:
        folder = ROOT / "tests" / self.path.relative_to(PACKAGE).parent
        return folder / f"test_{self.name}.py"

    def parse(self) -> ast.Module:
        return parse(self.path)


def pass_files() -> list[PassFile]:
    """Return all files that must define a pass; helpers of a folder begin with an underscore."""
    found = [path for folder in PASS_FOLDERS for path in (PACKAGE / folder).rglob("*.py")]
    return [PassFile(path) for path in sorted(found) if not path.name.startswith("_")]


def helper_files() -> list[Path]:
    """Return the files with what the passes of one folder alone share."""
    found = [path for folder in PASS_FOLDERS for path in (PACKAGE / folder).rglob("_*.py")]
    return [path for path in sorted(found) if path.name != "__init__.py"]


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def text_files() -> list[Path]:
    """Return the text files that git tracks, or would if they were added now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix != ".onnx"]
