"""The notebooks run: their cells by Python itself, and as notebooks where nbclient is installed."""

import contextlib
import importlib
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import pytest

from docs.site.sources import DOCS

NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
HAS_KERNEL = all(map(importlib.util.find_spec, ("nbclient", "nbformat", "ipykernel")))


def _code(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _printed(cell: dict[str, Any]) -> str:
    outputs = cell["outputs"]
    return "".join("".join(out["text"]) for out in outputs if out["output_type"] == "stream")


def test_there_are_two_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_optimisation", "wrong_pass"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_the_cells_run_and_print_what_the_notebook_says(path: Path) -> None:
    space: dict[str, Any] = {"__name__": path.stem}
    for cell in _code(path):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile("".join(cell["source"]), str(path), "exec"), space)
        assert said.getvalue() == _printed(cell)


@pytest.mark.skipif(not HAS_KERNEL, reason="needs nbclient and ipykernel: extra tiered[docs]")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_the_notebooks_execute(path: Path) -> None:
    nbclient, nbformat = map(importlib.import_module, ("nbclient", "nbformat"))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    said = [_printed(cell) for cell in notebook.cells if cell["cell_type"] == "code"]
    assert said == [_printed(cell) for cell in _code(path)]
