"""Text as Markdown: what the text has of its characters stays as it is, but for `code`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

_CODE = re.compile(r"(`[^`\n]+`)")
_SPECIAL = re.compile(r"([\\*_{}\[\]<>#|$~])")


def text(plain: str) -> str:
    """Return text on one line; words between backticks stay code."""
    parts = _CODE.split(" ".join(plain.split()))
    return "".join(
        part.replace("|", r"\|") if at % 2 else _SPECIAL.sub(r"\\\1", part)
        for at, part in enumerate(parts)
    )


def code(plain: str) -> str:
    """Return a name or a law as code within a line."""
    if not plain:
        return ""
    fence = "``" if "`" in plain else "`"
    return f"{fence}{' '.join(plain.split())}{fence}".replace("|", r"\|")


def paragraphs(plain: str) -> str:
    """Return a docstring without its arguments as paragraphs and lists."""
    prose = inspect.cleandoc(plain).partition("\nArgs:\n")[0].strip()
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", prose) if block.strip())


def _block(block: str) -> str:
    lines = block.splitlines()
    if lines[0] == "Raises:":
        errors = re.split(r"\n    (?=\S)", "\n".join(["", *lines[1:]]))[1:]
        return "\n".join(["Errors:", "", *(f"- {text(error)}" for error in errors)])
    if all(line.startswith("    ") for line in lines):
        return fenced("\n".join(line[4:] for line in lines))
    if lines[0].lstrip().startswith("- "):
        items = re.split(r"\n\s*- ", "\n" + block)[1:]
        return "\n".join(f"- {text(item)}" for item in items)
    return text(block)


def fenced(plain: str, language: str = "text") -> str:
    """Return a block of code."""
    return f"````{language}\n{plain}\n````"


def table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the cells are Markdown."""
    names = list(headers)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def render(template: str, **data: Any) -> str:
    """Return a template of `templates/` with this data."""
    return _environment().get_template(template).render(data)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(  # Markdown: the filters escape, not the environment
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": code, "fenced": fenced, "paragraphs": paragraphs, "text": text
    }  # fmt: skip
    return environment
