"""Write the index of passes: `python -m tiered.passes.index.build`, which is `make index`."""

from __future__ import annotations

import os
from typing import Any, Final

from tiered.passes.index.lazy import PACKAGE, operators_as_text
from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.registry import PACKAGES, Registry
from tiered.passes.kinds.body import BodyPass
from tiered.support.numerics import FEW_BITS, QUANTIZED, Numerics, Promise
from tiered.support.typed_options import Option
from tiered.support.whole_files import write_text

_APART: Final = "\n"
PATH: Final = os.path.join(os.path.dirname(__file__), "table.py")

_HEAD: Final = '''"""The info of each pass, without its file. `make index` writes this."""

from typing import Final, Literal

from tiered.passes.index.entry import Indexed
from tiered.passes.interface.pass_info import PassInfo
from tiered.support.numerics import FEW_BITS, QUANTIZED, Numerics
from tiered.support.typed_options import Option, Size

INDEX: Final[dict[str, Indexed]] = {
'''


def index_text() -> str:
    """Return the text of the index, from the files of all passes."""
    passes = Registry(PACKAGES, None).load_all()
    # Conditions are checked before a pass runs, so the index has no pass with any.
    found = (p for p in passes.values() if isinstance(p, BodyPass) and not p.conditions)
    # Blank lines keep entries apart for a merge, which takes both sides (.gitattributes).
    return f"{_HEAD}{_APART.join(map(_line, found))}}}\n"


def _line(pass_: BodyPass) -> str:
    info = pass_.info
    folder = os.path.relpath(os.path.dirname(info.source), PACKAGE).replace(os.sep, "/")
    fields = [
        f"{name}={_written(value)}"
        for name, value in info._asdict().items()
        if name != "source" and value != PassInfo._field_defaults.get(name, ...)
    ]
    known = f"PassInfo({', '.join(fields)})"
    operators = operators_as_text(pass_.body.operators)
    return f'    "{info.name}": Indexed("{folder}", {known}, {operators!r}),\n'


def _written(value: Any) -> str:
    """Return a value of a `PassInfo` as a Python expression."""
    match value:
        case Numerics():
            return f"Numerics.{value.name}"
        case Promise():
            named = {QUANTIZED: "QUANTIZED", FEW_BITS: "FEW_BITS"}
            return named[value]
        case Option():
            return f"Option({value.name!r}, {_type(value.type)}, {value.default!r}, {value.doc!r})"
        case tuple():
            return f"({''.join(f'{_written(item)}, ' for item in value).rstrip()})"
        case _:
            return repr(value)


def _type(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else repr(kind)
    return text.replace("typing.", "").replace("tiered.support.typed_options.", "")


if __name__ == "__main__":
    write_text(str(PATH), index_text())
