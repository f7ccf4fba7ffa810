"""Edits of a pipeline as text, by a backend or a user.

    before TARGET: passes       insert passes before a pass
    after TARGET: passes        insert passes after it
    replace TARGET: passes      replace it
    drop TARGET                 remove it
    set TARGET{option=value}    change its options

TARGET is a pass by any of its names, a group, or one occurrence (`fold_constant:2`); without a
number the edit acts on all occurrences. `passes` is pipeline text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, get_args

from tiered.support.errors import PipelineSyntaxError, did_you_mean

EditKind = Literal["before", "after", "replace", "drop", "set"]

_KINDS: Final = get_args(EditKind)
_FORM: Final = re.compile(
    r"\s*(?P<kind>\w+)\s+(?P<target>[\w.-]+(?::\d+)?)\s*(?P<rest>.*?)\s*", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class PipelineEdit:
    """One edit: its kind, target, passes (or options), reason and author."""

    kind: EditKind
    target: str
    passes: str = ""
    """Pipeline text; for `set` the options in braces."""
    why: str = ""
    by: str = ""

    @classmethod
    def parse(cls, text: str, *, why: str = "", by: str = "") -> Self:
        """Parse an edit.

        Raises:
            PipelineSyntaxError: the text is not an edit.
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
        """Return the edit with its author; an edit that has one keeps it."""
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
    """Parse pipeline edits and set their author.

    Raises:
        PipelineSyntaxError: a string is not an edit.
    """
    if isinstance(edits, str):
        edits = (edits,)
    return tuple(
        (edit if isinstance(edit, PipelineEdit) else PipelineEdit.parse(edit)).of(author)
        for edit in edits
    )
