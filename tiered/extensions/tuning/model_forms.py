"""Forms of a model: the settings that make each one, as a command line would have them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final

UNTOUCHED: Final = "as it is"
_EDITED: Final = re.compile(r"^\w+ ([\w.-]+)")
"""The pass that an edit is about."""


@dataclass(frozen=True)
class ModelForm:
    """One form of the model: what `tiered optimize` is asked for, or a file.

    Attributes:
        level: the level; None for a file that stays as it is.
        backend: the target, "" for the default one.
        required, disabled: entries of the context.
        edits: of the pipeline.
        file: the file of a candidate, "" for the model itself.
    """

    level: int | None
    backend: str = ""
    required: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    file: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `tiered.optimize`; of a file, none."""
        if self.level is None:
            return {}
        return {
            "opt_level": self.level,
            "backend": self.backend or None,
            "required": list(self.required),
            "disabled": list(self.disabled),
            "edits": list(self.edits),
        }

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `tiered optimize` that make it."""
        if self.level is None:
            return ()
        return (
            f"-O{self.level}",
            *(("--backend", self.backend) if self.backend else ()),
            *(part for name in self.required for part in ("--require", name)),
            *(part for name in self.disabled for part in ("--disable", name)),
            *(part for edit in self.edits for part in ("--edit", edit)),
        )

    def __str__(self) -> str:
        if self.level is None:
            return self.file or UNTOUCHED
        options = shlex.join(self.options)
        return f"{self.file} {options}" if self.file else options


@dataclass(frozen=True)
class Choice:
    """One decision that a form may take or not.

    Attributes:
        text: what it does, for readers: "without fuse_gelu".
        required, disabled, edits: what it adds to a form.
        blocks: digests of the blocks that it concerns; equal blocks have one.
        count: how many places it concerns, 0 if that is unknown.
    """

    text: str
    required: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    blocks: tuple[str, ...] = field(default=(), compare=False)
    count: int = field(default=0, compare=False)

    @property
    def passes(self) -> frozenset[str]:
        """The names of the passes that it is about."""
        edited = (_EDITED.search(edit) for edit in self.edits)
        names = [name.partition("@")[0] for name in (*self.required, *self.disabled)]
        return frozenset((*names, *(found[1] for found in edited if found is not None)))

    @property
    def is_scoped(self) -> bool:
        """Whether it is about some nodes alone."""
        entries = (*self.required, *self.disabled)
        return not self.edits and all("@" in name for name in entries)

    def added_to(self, form: ModelForm) -> ModelForm:
        """Return the form that also takes this decision."""
        return replace(
            form,
            required=_joined(form.required, self.required),
            disabled=_joined(form.disabled, self.disabled),
            edits=_joined(form.edits, self.edits),
        )


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def compatible(choices: Iterable[Choice]) -> list[Choice]:
    """Return decisions that do not contradict each other, the first ones of several.

    Two about the same pass do, unless both are about some of its nodes.
    """
    kept: list[Choice] = []
    for choice in choices:
        rivals = [other for other in kept if choice.passes & other.passes]
        if all(choice.is_scoped and other.is_scoped for other in rivals):
            kept.append(choice)
    return kept


def with_choices(form: ModelForm, choices: Iterable[Choice]) -> ModelForm:
    """Return a form that also takes some decisions."""
    for choice in choices:
        form = choice.added_to(form)
    return form


@dataclass(frozen=True)
class Made:
    """A form that was made.

    Attributes:
        form: its settings.
        path: its file.
        digest: of the file: equal forms are measured once.
        nbytes: of the file with its external data.
        nodes: of the graph, bodies too.
    """

    form: ModelForm
    path: str
    digest: str
    nbytes: int
    nodes: int

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Made) and self.digest == other.digest
