"""Files are written by `tiered.support.whole_files`: whole or not at all."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRITERS = {"write_text", "write_bytes", "savez", "savetxt", "tofile"}
NAMED = re.compile(rf"\b(open|{'|'.join(WRITERS)})\b")
ALLOWED = {
    "tiered/support/whole_files.py": "the writer itself",
    "tiered/runtime/worker/limits.py": "a file of /proc",
    "tiered/support/peak.py": "a file of /proc",
    "tiered/extensions/fleet/manifest.py": "each line is appended; a cut last line is ignored",
    "tiered/extensions/debug/oracles.py": "a temporary folder",
}


def _faults(path: Path) -> list[str]:
    """Return the calls that write to a path, but for arrays written to an open file."""
    found, text = [], path.read_text()
    if not NAMED.search(text):  # to parse takes long
        return []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            modes = (*node.args[1:2], *_of(node, "mode"))
            found += [ast.unparse(node) for mode in modes if set(ast.unparse(mode)) & set("wxa+")]
        elif isinstance(called, ast.Attribute) and called.attr in WRITERS:
            is_path = node.args and not isinstance(node.args[0], ast.Name)
            found += [ast.unparse(node)] if is_path or called.attr.startswith("write") else []
    return found


def _of(node: ast.Call, name: str) -> list[ast.expr]:
    return [keyword.value for keyword in node.keywords if keyword.arg == name]


def test_files_are_written_whole() -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tiered").rglob("*.py")}
    writing = {name: found for name, path in paths.items() if (found := _faults(path))}
    assert {name: found for name, found in writing.items() if name not in ALLOWED} == {}
    assert writing.keys() == ALLOWED.keys()


def test_a_write_to_a_path_is_found(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("open(p, 'w')\nopen(p, mode='xb')\nopen(p, 'rb')\nopen(p)\np.write_text('')\n")
    assert len(_faults(path)) == 3
