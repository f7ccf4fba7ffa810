"""Write the index of passes: `python -m tiered.passes.index.build`, which is `make index`."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tiered.passes.index.lazy import PACKAGE, operators_as_text
from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.registry import PACKAGES, Registry
from tiered.passes.kinds.body import BodyPass
from tiered.support.numerics import FEW_BITS, QUANTIZED, Numerics, Promise
from tiered.support.typed_options import Option
from tiered.support.whole_files import write_text

PATH: Final = os.path.join(os.path.dirname(__file__), "table.py")

_HEAD: Final = '''"""The info of each pass, without its file. `make index` writes this."""

from typing import Final, Literal

from tiered.passes.index.entry import Indexed
from tiered.passes.interface.pass_info import PassInfo
from tiered.support.numerics import FEW_BITS, QUANTIZED, Numerics
from tiered.support.typed_options import Option, Size

INDEX: Final[dict[str, Indexed]] = {
'''

_WIDTH: Final = 100
"""The longest line."""

_ON_ONE_LINE: Final = ("name", "opt_level", "kind")


def index_text() -> str:
    """Return the text of the index, from the files of all passes."""
    passes = Registry(PACKAGES, None).load_all()
    # Conditions are checked before a pass runs, so the index has no pass with any.
    found = (p for p in passes.values() if isinstance(p, BodyPass) and not p.conditions)
    # Blank lines keep entries apart for a merge, which takes both sides (.gitattributes).
    entries = ("".join(f"{line}\n" for line in _entry(each)) for each in found)
    return _HEAD + "\n".join(entries) + "}\n"


def _entry(pass_: BodyPass) -> Iterator[str]:
    """Yield the lines of a pass, one for each thing that it declares: so that a diff is short."""
    info = pass_.info
    folder = os.path.relpath(os.path.dirname(info.source), PACKAGE).replace(os.sep, "/")
    given = {
        name: value
        for name, value in info._asdict().items()
        if name != "source" and value != PassInfo._field_defaults.get(name, ...)
    }
    yield f'    "{info.name}": Indexed("{folder}", PassInfo('
    named = (f"{name}={_written(given.pop(name))}," for name in _ON_ONE_LINE if name in given)
    yield f"        {' '.join(named)}"
    for name, value in given.items():
        yield from _lines(f"{name}=", value, ",", 8)
    yield from _lines("), ", operators_as_text(pass_.body.operators), "),", 4)


def _lines(before: str, value: object, after: str, indent: int) -> Iterator[str]:
    """Yield the lines of an expression: one for each option, else as few as its items fill."""
    left, below = " " * indent, " " * (indent + 4)
    line = f"{left}{before}{_written(value)}{after}"
    has_options = isinstance(value, tuple) and any(isinstance(each, Option) for each in value)
    if not isinstance(value, tuple) or (len(line) <= _WIDTH and not has_options):
        yield line
        return
    yield f"{left}{before}("
    if has_options:
        for option in value:
            yield from _option(option, below)
    else:
        yield from _filled(below, map(_written, value))
    yield f"{left}){after}"


def _option(option: Option, left: str) -> Iterator[str]:
    """Yield the lines of an option; its help begins another one if it is long."""
    known = f"{option.name!r}, {_type(option.type)}, {option.default!r}"
    line = f"{left}Option({known}, {option.doc!r}),"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{left}Option({known},"
    words = textwrap.wrap(option.doc, _WIDTH - len(left) - 10, drop_whitespace=False)
    yield from (f"{left}    {part!r}" for part in words[:-1])
    yield f"{left}    {words[-1]!r}),"


def _filled(left: str, items: Iterable[str]) -> Iterator[str]:
    """Yield lines of items, each filled up to the width."""
    line = left
    for item in items:
        if len(line) + len(item) + 2 > _WIDTH:
            yield line.rstrip()
            line = left
        line += f"{item}, "
    yield line.rstrip()


def _written(value: Any) -> str:
    """Return a value of a `PassInfo` as a Python expression."""
    match value:
        case Numerics():
            return f"Numerics.{value.name}"
        case Promise():
            named = {QUANTIZED: "QUANTIZED", FEW_BITS: "FEW_BITS"}
            return named[value]
        case tuple():
            items = ", ".join(map(_written, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        case _:
            return repr(value)


def _type(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else repr(kind)
    return text.replace("typing.", "").replace("tiered.support.typed_options.", "")


if __name__ == "__main__":
    write_text(str(PATH), index_text())
