"""Edits of a pipeline, as text: what a backend, or a user, makes of the default one.

    before TARGET: passes       passes in front of a pass
    after TARGET: passes        passes behind it
    replace TARGET: passes      passes in its place
    drop TARGET                 without it
    set TARGET{option=value}    with other options

TARGET is a pass by any of its names, a group, or one occurrence (`fold_constant:2`); without a
number the edit acts wherever the pass stands. `passes` is pipeline text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, get_args

from tiered.errors import PipelineSyntaxError, did_you_mean

EditKind = Literal["before", "after", "replace", "drop", "set"]

_KINDS: Final = get_args(EditKind)
_FORM: Final = re.compile(
    r"\s*(?P<kind>\w+)\s+(?P<target>[\w.-]+(?::\d+)?)\s*(?P<rest>.*?)\s*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class PipelineEdit:
    """One edit: what to do, where, with which passes (or options), why, and who wants it."""

    kind: EditKind
    target: str
    passes: str = ""
    """Pipeline text; of `set` the options in braces."""
    why: str = ""
    by: str = ""

    @classmethod
    def parse(cls, text: str, *, why: str = "", by: str = "") -> Self:
        """Return the edit that a text describes.

        Raises:
            PipelineSyntaxError: the text does not parse.
        """
        found = _FORM.fullmatch(text)
        if found is None or found["kind"] not in _KINDS:
            word = text.split(maxsplit=1)[0] if text.strip() else ""
            raise PipelineSyntaxError(
                f"{text!r} is no edit{did_you_mean(word, _KINDS)} (expected 'before TARGET: "
                "passes', 'after ...', 'replace ...', 'drop TARGET' or 'set TARGET{option=value}')"
            )
        kind, rest = found["kind"], found["rest"]
        passes = rest.removeprefix(":").strip() if kind in ("before", "after", "replace") else rest
        fits = {
            "drop": not rest,
            "set": rest.startswith("{") and rest.endswith("}"),
        }.get(kind, rest.startswith(":") and bool(passes))
        if not fits:
            expected = {"drop": "nothing", "set": "options in braces"}.get(kind, "': passes'")
            raise PipelineSyntaxError(f"{text!r}: expected {expected} after {found['target']!r}")
        return cls(kind, found["target"], passes, why, by)  # type: ignore[arg-type]  # one of _KINDS

    def of(self, author: str) -> Self:
        """Return the edit as somebody's; one that is somebody's already stays theirs."""
        return self if self.by else replace(self, by=author)

    def __str__(self) -> str:
        match self.kind:
            case "drop":
                return f"drop {self.target}"
            case "set":
                return f"set {self.target}{self.passes}"
            case _:
                return f"{self.kind} {self.target}: {self.passes}"


def edits_of(edits: Iterable[PipelineEdit | str], author: str) -> tuple[PipelineEdit, ...]:
    """Return edits and their texts as edits of somebody.

    Raises:
        PipelineSyntaxError: a text does not parse.
    """
    if isinstance(edits, str):
        edits = (edits,)
    return tuple(
        (edit if isinstance(edit, PipelineEdit) else PipelineEdit.parse(edit)).of(author)
        for edit in edits
    )
