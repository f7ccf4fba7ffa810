"""The models of a batch: the files of folders, globs and lists, each with its name below the root.

A source with `scheme://` is read through fsspec. The name of a model is its path below the folder,
or below the part of a glob before its first wildcard; that of a single file is its last part.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tiered.extensions.fleet import storage
from tiered.support.errors import ModelError, UsageError

SUFFIX: Final = ".onnx"
LIST_SUFFIX: Final = ".txt"
_WILDCARDS: Final = "*?["


@dataclass(frozen=True)
class ModelSource:
    """A model to read: its path or URL, its name in the results, and the bytes of its files."""

    path: str
    name: str
    nbytes: int


def find_sources(entries: Iterable[str], out_dir: str) -> list[ModelSource]:
    """Return the models of folders, globs, lists (.txt) and files, each once.

    Args:
        entries: as they are typed.
        out_dir: the folder of the results, which is no source.

    Raises:
        UsageError: an entry has no models, or two models would be written to one file.
        ModelError: an entry does not exist.
    """
    found: dict[str, ModelSource] = {}
    names: dict[str, str] = {}
    for entry in entries:
        for source in _expand(entry, out_dir):
            if source.path in found:
                continue
            if names.setdefault(source.name, source.path) != source.path:
                raise UsageError(
                    f"{names[source.name]!r} and {source.path!r} would both be written to "
                    f"{storage.join(out_dir, source.name)!r}; use separate batches"
                )
            found[source.path] = source
    if not found:
        raise UsageError("no models; expected a folder, a glob, a list (.txt) or files")
    return list(found.values())


def _expand(entry: str, out_dir: str) -> Iterator[ModelSource]:
    if entry.endswith(LIST_SUFFIX) and not _has_wildcard(entry):
        for number, line in _lines_of(entry):
            try:
                yield from _expand(line, out_dir)
            except (ModelError, UsageError) as error:
                raise type(error)(f"line {number} of {entry!r}: {error}") from error
        return
    files = _remote(entry) if storage.is_remote(entry) else _local(entry, out_dir)
    found = False
    for path, name, nbytes in files:
        found = True
        yield ModelSource(path, name, nbytes)
    if not found:
        raise UsageError(f"{entry!r} has no models; expected files that end with {SUFFIX}")


def _lines_of(path: str) -> Iterator[tuple[int, str]]:
    """Yield the entries of a list with the numbers of their lines, empty ones and comments (#) not.

    Raises:
        ModelError: it cannot be read, or is not UTF-8.
    """
    try:
        text = storage.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path!r} is not UTF-8 text; expected one entry a line") from error
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            yield number, entry


def _has_wildcard(entry: str) -> bool:
    return any(char in entry for char in _WILDCARDS)


def _root_of(entry: str) -> str:
    """Return the folders of a glob before its first wildcard."""
    at = min(entry.find(char) for char in _WILDCARDS if char in entry)
    return entry[: entry.rfind("/", 0, at) + 1]


# --- files of this machine ------------------------------------------------------------------------


def _local(entry: str, out_dir: str) -> Iterator[tuple[str, str, int]]:
    if os.path.isfile(entry):
        yield entry, os.path.basename(entry), _size(entry)
    elif os.path.isdir(entry):
        skipped = None if storage.is_remote(out_dir) else os.path.realpath(out_dir)
        for path in _walk(entry, skipped):
            yield path, os.path.relpath(path, entry).replace(os.sep, "/"), _size(path)
    elif _has_wildcard(entry):
        root = _root_of(entry.replace(os.sep, "/"))
        for path in sorted(glob.glob(entry, recursive=True)):
            if os.path.isfile(path):
                name = os.path.relpath(path, root or ".").replace(os.sep, "/")
                yield path, name, _size(path)
    else:
        raise ModelError(f"cannot read {entry!r}: no such file or folder")


def _walk(folder: str, skipped: str | None) -> Iterator[str]:
    """Yield the models below a folder, in the order of their names."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(os.path.join(here, name)) != skipped
        )
        for name in sorted(files):
            if name.endswith(SUFFIX) and not name.startswith("."):
                yield os.path.join(here, name)


def _size(path: str) -> int:
    """Return the bytes of a model, and of the files beside it that have its name as a prefix."""
    try:
        total = os.path.getsize(path)
        for beside in (f"{path}.data", f"{path}.safetensors", f"{path}_data"):
            if os.path.isfile(beside):
                total += os.path.getsize(beside)
    except OSError:  # it is reported when the model is read
        return 0
    return total


# --- files of other file systems ------------------------------------------------------------------


def _remote(entry: str) -> Iterator[tuple[str, str, int]]:
    files, root = storage.files_of(entry, _root_of(entry) if _has_wildcard(entry) else None)
    for path, nbytes in files:
        if path == entry:
            yield path, path.rpartition("/")[2], nbytes
        elif path.endswith(SUFFIX):
            yield path, path.removeprefix(root).lstrip("/"), nbytes
