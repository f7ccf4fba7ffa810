"""Transcripts: files, command lines, and all that each command prints.

`== NAME` begins a file: a model in the form of `tiered.testing.parse`, or any other text. `$ `
begins a command line of `tiered`. What it prints follows: lines of stderr begin with `! `, the last
line is the exit code if it is not 0. What varies by itself is left out; JSON has a line for each of
its entries, with six digits. The passes of a table of times are sorted by name, or left out.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import onnx

from tests.recorded import assert_recorded
from tiered.testing import parse

ROOT = Path(__file__).resolve().parents[2]

VARIES = re.compile(
    r" *\b\d+\.\d+ m?s\b| +(?=time$)|(?<=───)─+|(?<=lists all )\d+|(?<=\.py):\d+"
    r'|(tiered\.[\w.]+:)\d+|\b[0-9a-f]{16,}\b|(?<="seconds": )[\d.e-]+'
    r"|^((?:seconds|peak_memory|peak memory|versions|sqnr|sqnr_deployed): ).*"
    r"|(?<=int8)(?: +[\d.]+%?)+$|(?<=sqnr )[\d.]+|[\d.]+(?= dB)"
    r"|(?<=largest difference )[1-9][\d.e+-]+"
)
"""Times, how wide their column is, how many passes there are, digests, what the machine has, and
what the products of its processor decide."""


def assert_transcript(cli: Callable[..., Any], path: Path) -> None:
    """Write the files of a transcript to the working directory, and run its command lines."""

    def written(name: str, given: list[str]) -> list[str]:
        file, text = Path(name), "\n".join(given).strip()
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".onnx":
            onnx.save(parse(text), file)
        else:
            file.write_text(f"{text}\n", encoding="utf-8")
        return given

    def said(command: str, _: list[str]) -> Iterator[str]:
        yield from _without_order(map(_steady, _said(cli, command)))
        yield ""

    assert_recorded(path, {"==": written, "$": said})


def _said(cli: Callable[..., Any], command: str) -> Iterator[str]:
    ended = cli(*shlex.split(command))
    out = ended.out
    if out.startswith(("{\n", "[\n")):
        data = json.loads(out, parse_float=lambda text: float(f"{float(text):.6g}"))
        named = isinstance(data, dict)
        entries = data.items() if named else enumerate(data)
        yield from (f"{name}: {json.dumps(each)}" for name, each in entries)
    else:
        yield from out.splitlines()
    yield from (f"! {line}" for line in ended.err.splitlines())
    if ended.code:
        yield f"exit {ended.code}"


def _without_order(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith("Where the time went"):
            rows = list(takewhile(bool, lines))
            is_whole = not rows[-1].startswith("  and ")
            # The slowest passes, which differ, decide how wide a part of the table is.
            yield from (*rows[:2], *sorted(rows[2:])) if is_whole else rows[-1:]
            yield ""


def _steady(text: str) -> str:
    for folder in (Path.cwd(), ROOT):
        text = text.replace(f"{folder}/", "")
    return VARIES.sub(r"\1\2_", text.rstrip())
