"""The manifest of a batch: one JSON line for each result, appended and synced to the disk.

A line is appended after the result is in its place, so what it says is there. A batch that is
killed leaves at most one line that is not whole, which is ignored.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Final, Self

from tiered.extensions.fleet.result_line import Result
from tiered.support.errors import ModelError, UsageError, words_of

NAME: Final = "tiered-batch.jsonl"
"""The name of the manifest in the folder of the results."""


class Manifest:
    """An open manifest, which no other process can open meanwhile.

    Args:
        path: the file.
        resume: whether to go on after its lines; otherwise it starts empty.

    Attributes:
        before: the last line of each target, from earlier runs.

    Raises:
        UsageError: another batch has it open.
        ModelError: it cannot be written.
    """

    def __init__(self, path: str, *, resume: bool) -> None:
        self.path = path
        folder = os.path.dirname(path) or "."
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise ModelError(f"cannot write {path!r}: {folder!r} is a file; expected a folder")
        try:
            os.makedirs(folder, exist_ok=True)
            self._file = open(path, "a+b")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise ModelError(f"cannot write {path!r}: {words_of(error)}") from error
        try:
            self._lock()
            if not resume:
                self._file.truncate(0)
            self.before = {result.target: result for result in self._read()}
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, results: Iterable[Result]) -> None:
        """Append results, and return when they are on the disk."""
        lines = "".join(f"{result.line()}\n" for result in results)
        if lines:
            self._file.write(lines.encode())
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; another process can open it then."""
        self._file.close()

    def _read(self) -> Iterator[Result]:
        self._file.seek(0)
        content = self._file.read()
        if content and not content.endswith(b"\n"):
            self._file.write(b"\n")  # the next line does not continue the broken one
            self._file.flush()
        for line in content.decode(errors="replace").splitlines():
            result = Result.of_line(line)
            if result is not None:
                yield result

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not a POSIX system
            return
        with contextlib.suppress(OSError):  # some network file systems have no locks
            try:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another batch writes {self.path!r}; wait for its end or use another folder"
                ) from error


def read_manifest(path: str) -> list[Result]:
    """Return the whole lines of a manifest.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            results = [Result.of_line(line) for line in file]
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {words_of(error)}") from error
    return [result for result in results if result is not None]
