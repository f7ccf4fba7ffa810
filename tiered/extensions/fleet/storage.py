"""Files of a batch: of this machine by the operating system, of others by fsspec.

A file is written whole or not at all: here through a temporary file that is synced to the disk and
takes the place of the old one; elsewhere by one upload, which object stores do whole.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from typing import Any, Final

from tiered.support.errors import FleetError, ModelError, words_of

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]+://|[a-z0-9+.-]+::", re.IGNORECASE)


def is_remote(path: str) -> bool:
    """Return whether a path is a URL that fsspec reads."""
    return _SCHEME.match(path) is not None and not path.startswith("file://")


def local_path(path: str) -> str:
    """Return a path of this machine without the scheme `file://`."""
    return path.removeprefix("file://")


def join(folder: str, name: str) -> str:
    """Return the path or URL of a name below a folder."""
    if is_remote(folder):
        return f"{folder.rstrip('/')}/{name}"
    return os.path.join(local_path(folder), *name.split("/"))


def parent(path: str) -> str:
    """Return the folder of a file."""
    return path.rpartition("/")[0] if is_remote(path) else os.path.dirname(path)


def size_of(path: str) -> int | None:
    """Return the bytes of a file, None if there is no such file."""
    try:
        if not is_remote(path):
            return os.path.getsize(local_path(path))
        system, inner = _system(path)
        system.invalidate_cache()
        return int(system.info(inner)["size"])
    except FileNotFoundError:
        return None


def files_of(entry: str, root: str | None) -> tuple[list[tuple[str, int]], str]:
    """Return the files of a URL with their bytes, and the URL that their names are below.

    Args:
        entry: a file, a folder, or a glob.
        root: the part of a glob before its first wildcard; None for what is no glob.

    Raises:
        ModelError: there is no such file or folder.
    """
    system, inner = _system(entry)
    try:
        if root is not None:
            found = system.glob(inner, detail=True)
        elif system.isfile(inner):
            return [(entry, int(system.info(inner)["size"]))], parent(entry)
        else:
            found = system.find(inner, detail=True)
            if not found and not system.exists(inner):
                raise ModelError(f"cannot read {entry!r}: no such file or folder")
    except OSError as error:
        raise ModelError(f"cannot read {entry!r}: {error}") from error
    files = sorted(
        (_url(entry, str(name)), int(info.get("size") or 0))
        for name, info in found.items()
        if info.get("type") != "directory"
    )
    return files, _url(entry, _system(root or entry)[1])


def _url(entry: str, inner: str) -> str:
    """Return the URL of a path in the file system of another URL."""
    return inner if "://" in inner else f"{entry.partition('://')[0]}://{inner.lstrip('/')}"


def read_bytes(path: str) -> bytes:
    """Return the content of a file.

    Raises:
        ModelError: it cannot be read.
    """
    try:
        if not is_remote(path):
            with open(local_path(path), "rb") as file:
                return file.read()
        system, inner = _system(path)
        return bytes(system.cat_file(inner))
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {words_of(error)}") from error


def fetch(path: str, target: str) -> None:
    """Copy a remote file to a file of this machine.

    Raises:
        ModelError: it cannot be read.
    """
    system, inner = _system(path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        system.get_file(inner, target)
    except OSError as error:
        raise ModelError(f"cannot read {path!r}: {error}") from error


def place(file: str, target: str, *, syncs: bool = True) -> None:
    """Move a complete local file to its place, whole or not at all.

    Args:
        file, target: from where to where.
        syncs: whether it is on the disk afterwards, if the place is on this machine.

    Raises:
        ModelError: the place cannot be written.
    """
    try:
        if is_remote(target):
            system, inner = _system(target)
            system.makedirs(parent(inner), exist_ok=True)
            system.put_file(file, inner)
            os.unlink(file)
            return
        target = local_path(target)
        folder = os.path.dirname(target) or "."
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
        if syncs:
            sync_files([file])
        os.replace(file, target)
        if syncs:
            sync_folders([target])
    except OSError as error:
        raise ModelError(f"cannot write {target!r}: {words_of(error)}") from error


def sync_files(paths: Iterable[str]) -> None:
    """Return when the content of files is on the disk; those that are not there are left out.

    Raises:
        ModelError: the disk does not take one.
    """
    for path in map(local_path, paths):
        try:
            _sync(path, os.O_RDWR)  # Windows syncs no file that is only read
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ModelError(f"cannot write {path!r}: {words_of(error)}") from error


def sync_folders(targets: Iterable[str]) -> None:
    """Return when the names of files of this machine are on the disk."""
    for folder in sorted({os.path.dirname(local_path(target)) or "." for target in targets}):
        if os.name != "nt":  # which opens no folders
            _sync(folder, os.O_RDONLY)


def copy(source: str, scratch: str) -> None:
    """Copy a file, local or remote, to a local one."""
    if is_remote(source):
        fetch(source, scratch)
    else:
        os.makedirs(os.path.dirname(scratch), exist_ok=True)
        shutil.copyfile(local_path(source), scratch)


def remove(path: str) -> None:
    """Remove a file, if there is one."""
    try:
        if is_remote(path):
            system, inner = _system(path)
            system.rm_file(inner)
        else:
            os.unlink(local_path(path))
    except FileNotFoundError:
        return


def _sync(path: str, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _system(path: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        FleetError: fsspec or the package of the file system is not installed.
    """
    try:
        from fsspec.core import url_to_fs

        system, inner = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise FleetError(
            f"cannot open {path!r}: {error}; install tiered[fleet] and the package of the file "
            "system (s3fs, gcsfs, adlfs, aiohttp)"
        ) from error
    return system, str(inner)
