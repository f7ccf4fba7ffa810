"""The verdicts of a search, in a file, so that it can go on after an interruption."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field

import onnx

from tiered import __version__
from tiered.extensions.debug.oracles import Oracle
from tiered.extensions.debug.pipeline_runs import Subject
from tiered.support.errors import ModelError
from tiered.support.whole_files import write_json

_CHUNK = 1 << 20


@dataclass
class ResumeFile:
    """Verdicts by question; "" means right.

    Args:
        path: the file; None keeps the verdicts in memory only.
        subject: a digest of the search. A file of another search is overwritten.
    """

    path: str | None = None
    subject: str = ""
    verdicts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, path: str | os.PathLike[str] | None, subject: Subject, oracle: Oracle
    ) -> ResumeFile:
        """Return the verdicts that a file has for a search.

        Raises:
            ModelError: the file cannot be read.
        """
        if path is None:
            return cls()
        name, about = os.fspath(path), _digest(subject, oracle)
        try:
            with open(name, encoding="utf-8") as file:
                known = json.load(file)
        except FileNotFoundError:
            known = {}
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot read {name} to resume from: {error}") from error
        is_same = isinstance(known, dict) and known.get("subject") == about
        verdicts = known.get("verdicts") if is_same else None
        return cls(name, about, verdicts if isinstance(verdicts, dict) else {})

    def keep(self, question: str, verdict: str) -> None:
        """Add a verdict, and write the file.

        Raises:
            ModelError: the file cannot be written.
        """
        self.verdicts[question] = verdict
        if self.path is None:
            return
        known = {"subject": self.subject, "verdicts": self.verdicts}
        write_json(self.path, known)


def _digest(subject: Subject, oracle: Oracle) -> str:
    """Return a hash of all that the verdicts depend on."""
    found = hashlib.sha256()
    settings = sorted((name, repr(value)) for name, value in subject.settings.items())
    for text in (__version__, str(subject.pipeline), repr(settings), oracle.name):
        found.update(f"{text}\n".encode())
    if isinstance(subject.source, onnx.ModelProto):
        found.update(subject.source.SerializeToString(deterministic=True))
    else:
        with open(subject.source, "rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    return found.hexdigest()
