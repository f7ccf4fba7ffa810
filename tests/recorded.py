"""Texts that hold entries, and all that each entry comes to.

A line that begins with a mark begins an entry: `>>> expression`, or what a caller says. With
RECORD=1 in the environment, the text is written instead of compared.
"""

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
COUNT = re.compile(r"(?<=lists all )\d+")
"""How many passes there are."""
Said = Callable[[str, list[str]], Iterable[str]]
"""Returns the lines below an entry, of its text and of the lines that are there."""


def assert_recorded(path: Path, said: Mapping[str, Said]) -> None:
    """Assert that the entries of a file come to the lines below them.

    Args:
        path: the file.
        said: by the mark that begins an entry, what returns its lines.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[str] = []
    starts = [at for at, line in enumerate(lines) if line.partition(" ")[0] in said]
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        mark, _, rest = lines[at].partition(" ")
        below = [line.rstrip() for line in said[mark](rest, lines[at + 1 : end])]
        assert not any(line.partition(" ")[0] in said for line in below), below
        found += [lines[at], *below]
    while found and not found[-1]:
        found.pop()
    if os.environ.get("RECORD"):
        path.write_text("\n".join([*found, ""]), encoding="utf-8")
        return
    for number, (line, expected) in enumerate(zip_longest(found, lines), 1):
        # Of the whole texts pytest would make a difference for minutes.
        assert line == expected, f"{path.name}, line {number}"


def assert_values(test: str, names: dict[str, Any]) -> None:
    """Assert that the expressions of a file have the values, or the errors, below them.

    Args:
        test: the file of the test: `x.txt` is beside `test_x.py`, and no doctest of pytest.
        names: what the expressions may use.
    """
    path = Path(test)
    path = path.with_name(f"{path.stem.removeprefix('test_')}.txt")

    def value(source: str, _: list[str]) -> list[str]:
        shown = io.StringIO()
        # Workers of pytest-xdist have COLUMNS, at which lines would be broken.
        with contextlib.redirect_stdout(shown), mock.patch.dict(os.environ):
            os.environ.pop("COLUMNS", None)
            try:
                exec(compile(source, path.name, "single"), names)
            except Exception as error:  # noqa: BLE001 - it is what the expression comes to
                print(f"{type(error).__name__}: {error}")
        said = shown.getvalue().replace(f"{ROOT}/", "")
        return COUNT.sub("_", said).splitlines()

    assert_recorded(path, {">>>": value})
