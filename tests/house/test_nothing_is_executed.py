"""A model or a config is data: nothing of it is ever run, or unpickled."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN = {"marshal", "pickle", "shelve", "dill", "cloudpickle"}
RUNS = {"eval", "exec", "compile", "__import__"}
NAMED = re.compile(rf"\b({'|'.join(FORBIDDEN)}|allow_pickle)\b|(?<![\w.])({'|'.join(RUNS)})\b")
ALLOWED = {
    # The annotations of a pass function, which are code of whoever wrote the pass.
    ("tiered/support/typed_options.py", "eval"),
}


def _faults(path: Path) -> list[str]:
    """Return what a file does that could run what it reads."""
    name, faults, text = path.relative_to(ROOT).as_posix(), [], path.read_text()
    if not NAMED.search(text):  # to parse takes long
        return []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            faults += [alias.name for alias in node.names if alias.name in FORBIDDEN]
        elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN:
            faults.append(node.module)
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in RUNS:
                faults += [called.id] if (name, called.id) not in ALLOWED else []
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False":
                    faults.append("allow_pickle")
    return faults


def test_nothing_that_is_read_is_run() -> None:
    files = sorted((ROOT / "tiered").rglob("*.py"))
    assert {str(path): found for path in files if (found := _faults(path))} == {}


def test_what_would_run_something_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "bad.py"
    path.write_text("import pickle\nfrom marshal import loads\neval('1')\nf(allow_pickle=1)\n")
    assert sorted(_faults(path)) == ["allow_pickle", "eval", "marshal", "pickle"]
