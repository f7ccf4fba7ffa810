"""One command of tiered for many models: the command, and the job of each model."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Final, Literal

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.sources import ModelSource

CommandName = Literal["optimize", "quantize", "verify", "check", "inspect"]
_WRITE_MODELS: Final = ("optimize", "quantize")
REPORT_SUFFIX: Final = ".json"


@dataclass(frozen=True)
class Command:
    """A command line without its files.

    Attributes:
        name: the command.
        options: the words of its options.
        against: the folder of the models that `verify` takes as correct; None for other commands.
    """

    name: CommandName
    options: tuple[str, ...] = ()
    against: str | None = None

    @property
    def writes_model(self) -> bool:
        """Whether the result is a model; otherwise it is the JSON that the command prints."""
        return self.name in _WRITE_MODELS

    @property
    def compares(self) -> bool:
        """Whether the command compares outputs."""
        asked = (word.partition("=")[0] == "--verify" for word in self.options)
        return self.name == "verify" or any(asked)

    @property
    def runs_models(self) -> bool:
        """Whether the command runs the models."""
        return self.name == "quantize" or self.compares

    def identity(self) -> str:
        """Return a digest of the command and of the content of all files that its options name."""
        content: list[str] = [self.name, *self.options]
        for word in self.options:
            value = word.partition("=")[2] or word
            if os.path.isfile(value):
                with open(value, "rb") as file:
                    content.append(hashlib.file_digest(file, "sha256").hexdigest())
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    def words(self, files: tuple[str, ...], out: str) -> list[str]:
        """Return the whole command line, with the file of its result if that is a model."""
        written = [out] if self.writes_model else []
        printed = "--quiet" if self.writes_model else "--json"
        return [self.name, *files, *written, *self.options, printed]


@dataclass(frozen=True)
class Job:
    """The work for one model: what is read, and the result that is written.

    Attributes:
        source: the model.
        target: the path or URL of the result.
        other: the model that `verify` takes as correct; None for other commands.
        reproducer: the folder for a bundle, if it fails.
    """

    source: ModelSource
    target: str
    other: str | None = None
    reproducer: str | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The models to read, in the order of the command line."""
        return (self.source.path,) if self.other is None else (self.other, self.source.path)


def jobs_of(
    command: Command, sources: list[ModelSource], out_dir: str, reproducers: str | None = None
) -> list[Job]:
    """Return the jobs of a batch, largest model first: so the last ones to end are short."""
    suffix = "" if command.writes_model else REPORT_SUFFIX
    against = command.against
    return [
        Job(
            source,
            storage.join(out_dir, source.name + suffix),
            None if against is None else storage.join(against, source.name),
            None if reproducers is None else os.path.join(reproducers, source.name),
        )
        for source in sorted(sources, key=lambda each: (-each.nbytes, each.path))
    ]
