"""Files that are written whole or not at all.

The content goes to a temporary file in the same folder, which then replaces the old file. Every
file that a command leaves behind is written here.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from tiered.support.errors import ModelError, words_of


class Unfinished:
    """A temporary file, and what replaces a file by it.

    Attributes:
        file: the open file.
        path: its path.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file = file
        self.path = path

    def place(self, target: str) -> None:
        """Move the complete file to its place."""
        self.file.flush()
        os.replace(self.path, target)


@contextlib.contextmanager
def unfinished(path: str, suffix: str = "") -> Iterator[Unfinished]:
    """Open a temporary file in the folder of `path`; it is removed unless it is placed."""
    folder, name = os.path.split(path)
    # Recorded before the file exists, so that no interrupt can come between.
    temporary = os.path.join(folder, f".{name}{suffix}.{os.urandom(6).hex()}")
    try:
        with open(temporary, "xb") as file:
            yield Unfinished(file, temporary)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end of the block, unless the block raises.

    Raises:
        ModelError: it cannot be written.
    """
    try:
        with unfinished(path) as made:
            yield made.file
            made.place(path)
    except OSError as error:
        raise ModelError(f"cannot write {path!r}: {words_of(error)}") from error


def write_text(path: str, *chunks: str) -> None:
    """Write text to a file.

    Raises:
        ModelError: it cannot be written.
    """
    write_chunks(path, chunks)


def write_chunks(path: str, chunks: Iterable[str]) -> None:
    """Write text to a file, part by part.

    Raises:
        ModelError: it cannot be written.
    """
    with whole_file(path) as file:
        for chunk in chunks:
            file.write(chunk.encode())


def write_json(path: str, record: Any, indent: int = 1) -> None:
    """Write a record as JSON to a file.

    Raises:
        ModelError: it cannot be written.
    """
    write_text(path, json.dumps(record, indent=indent), "\n")
