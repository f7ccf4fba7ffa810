"""The line of one model: what became of it, as the manifest, JSON lines and tables have it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

Status = Literal["done", "cached", "skipped", "failed", "crashed", "timeout", "memory", "not run"]
"""done: written by this run; cached: a copy of the result of an equal input; skipped: done before;
failed: the command reported an error; crashed, timeout, memory: its process was lost or stopped;
not run: --fail-fast ended the batch first."""

SUCCESSFUL: Final = frozenset({"done", "cached", "skipped"})


@dataclass(frozen=True)
class Result:
    """What became of one model.

    Attributes:
        source, target: paths or URLs.
        status, reason, exit_code: as of the command; the reason is one line, "" for success.
        nodes_before, nodes_after, bytes_before, bytes_after: of models that were rewritten.
        seconds: the time of the command.
        peak: the most bytes that its processes held, None if unknown.
        passes: those that rewrote the model, with their rewrites: "fold_constant=3 fuse_gelu=12".
        verified: whether outputs were compared and agree; None if that was not asked for.
        sha256_in, sha256_out: of the files that were read and written; "" if unknown.
        nbytes: the bytes of the file that was written.
        command: a digest of the command and its options.
        versions: of tiered, onnx and onnxruntime.
    """

    source: str
    target: str
    status: Status
    reason: str = ""
    exit_code: int = 0
    nodes_before: int | None = None
    nodes_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    seconds: float = 0.0
    peak: int | None = None
    passes: str = ""
    verified: bool | None = None
    sha256_in: str = ""
    sha256_out: str = ""
    nbytes: int | None = None
    command: str = ""
    versions: str = ""

    @property
    def ok(self) -> bool:
        """Whether the result is there."""
        return self.status in SUCCESSFUL

    @property
    def key(self) -> tuple[str, str, str]:
        """What the result depends on: input, command and versions."""
        return self.sha256_in, self.command, self.versions

    def rewrites(self) -> dict[str, int]:
        """Return how often each pass rewrote the model, without those that did not."""
        pairs = (each.partition("=") for each in self.passes.split())
        return {name: int(count) for name, _, count in pairs}

    def line(self) -> str:
        """Return the result as one line of JSON."""
        return json.dumps(vars(self), ensure_ascii=True)  # its fields are plain values

    @classmethod
    def of_line(cls, line: str) -> Self | None:
        """Return the result of a line; None if the line is not whole."""
        try:
            read: Any = json.loads(line)
        except json.JSONDecodeError:
            return None
        fields = {field.name for field in dataclasses.fields(cls)}
        if not isinstance(read, dict) or set(read) != fields:
            return None
        return cls(**read)
