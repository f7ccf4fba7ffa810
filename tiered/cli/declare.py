"""What options declare beside their type, and how cyclopts gets to know it.

The modules that every command line loads declare their options without cyclopts: loading it takes
longer than to optimise a small model.
"""

from __future__ import annotations

import inspect
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Declared:
    """The settings of a `cyclopts.Parameter`, in the annotation of an option."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings


def with_parameters(options: T) -> T:
    """Return a command or a class of options, its annotations as cyclopts reads them."""
    hints = get_type_hints(options, include_extras=True)
    options.__annotations__ = {name: _with_parameter(hint) for name, hint in hints.items()}
    if isinstance(options, type):
        # cyclopts reads these, in the module of the class, which lacks the names of its bases.
        initialiser: Any = vars(options)["__init__"]
        initialiser.__annotations__ = dict(options.__annotations__)
    return options


def with_whole_paragraphs(docstring: str) -> str:
    """Return what a docstring says of a command, each paragraph in one line.

    Terminals have another width than the source.
    """
    described, _, _ = inspect.cleandoc(docstring).partition("\n\nArgs:\n")
    return "\n\n".join([" ".join(part.split()) for part in described.split("\n\n")])


def _with_parameter(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    from cyclopts import Parameter

    kind, *noted = get_args(hint)
    declarations = [note for note in noted if isinstance(note, Declared)]
    known = [Parameter(**note.settings) if isinstance(note, Declared) else note for note in noted]
    return Annotated[(kind, *declarations, *known)]


def declared(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Return the type of an option, and all that its annotation declares."""
    if get_origin(hint) is not Annotated:
        return hint, {}
    kind, *noted = get_args(hint)
    settings: dict[str, Any] = {}
    for note in noted:
        if isinstance(note, Declared):
            settings.update(note.settings)
    return kind, settings
