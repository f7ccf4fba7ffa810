"""Transcripts: files, command lines, and all that each command prints.

A transcript is a text. `== NAME` begins a file: a model in the form of `tiered.testing.parse`, or
any other text. `$ ` begins a command line of `tiered`. What it prints follows: lines of stderr
begin with `! `, the last line is the exit code if it is not 0. What varies by itself and
spaces at the ends of lines are left out; a JSON object has a line for each of its entries. With
TRANSCRIPTS=write in the environment, the text is written instead of compared.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import onnx

from tiered.testing import parse

ROOT = Path(__file__).resolve().parents[2]

VARIES = re.compile(
    r" *\b\d+\.\d+ m?s\b| +(?=time$)|(?<=───)─+|(?<=lists all )\d+|(?<=\.py):\d+"
    r'|(tiered\.[\w.]+:)\d+|\b[0-9a-f]{16,}\b|(?<="seconds": )[\d.e-]+'
    r"|^((?:seconds|peak_memory|versions): ).*"
)
"""Times, how wide their column is, how many passes there are, digests, what the machine has."""


def assert_transcript(cli: Callable[..., Any], path: Path) -> None:
    """Write the files of a transcript to the working directory, and run its command lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[str] = []
    starts = [at for at, line in enumerate(lines) if line.startswith(("== ", "$ "))]
    for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        kind, _, rest = lines[at].partition(" ")
        given = lines[at + 1 : end]
        if kind == "==":
            _write(Path(rest), "\n".join(given).strip())
        found += [lines[at], *(given if kind == "==" else [*map(_steady, _said(cli, rest)), ""])]
    while found and not found[-1]:
        found.pop()
    if os.environ.get("TRANSCRIPTS") == "write":
        path.write_text("\n".join([*found, ""]), encoding="utf-8")
        return
    for number, (line, expected) in enumerate(zip_longest(found, lines), 1):
        # Of the whole texts pytest would make a difference for minutes.
        assert line == expected, f"{path.name}, line {number}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".onnx":
        onnx.save(parse(text), path)
    else:
        path.write_text(f"{text}\n", encoding="utf-8")


def _said(cli: Callable[..., Any], command: str) -> Iterator[str]:
    ended = cli(*shlex.split(command))
    out = ended.out
    if out.startswith(("{\n", "[\n")):
        data = json.loads(out)
        named = isinstance(data, dict)
        entries = data.items() if named else enumerate(data)
        yield from (f"{name}: {json.dumps(each)}" for name, each in entries)
    else:
        yield from (line.rstrip() for line in out.splitlines())
    yield from (f"! {line}".rstrip() for line in ended.err.splitlines())
    if ended.code:
        yield f"exit {ended.code}"


def _steady(text: str) -> str:
    for folder in (Path.cwd(), ROOT):
        text = text.replace(f"{folder}/", "")
    return VARIES.sub(r"\1\2_", text)
