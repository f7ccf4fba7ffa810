"""Look up backends: built-in profiles, entry points, registered ones, files."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tiered.support.errors import RAISED, BackendError, BackendNotFoundError, did_you_mean
from tiered.targets.any_runtime import REGISTERED
from tiered.targets.backend import Backend
from tiered.targets.reading import (
    backend_of,
    extended,
    read_backend,
    read_table,
    with_known_types,
)

ENTRY_POINTS: Final = "tiered.backends"
SUFFIX: Final = ".toml"

_PROFILES: Final = os.path.join(os.path.dirname(__file__), "profiles")


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends, sorted, without reading a profile."""
    return tuple(sorted({*_built_in(), *_plugged(), *REGISTERED}))


def built_in_backends() -> tuple[Backend, ...]:
    """Return the built-in backends, sorted by name."""
    return tuple(_read_built_in(name) for name in sorted(_built_in()))


def get_backend(name: str | os.PathLike[str]) -> Backend:
    """Return the backend of a name, or of a TOML file.

    Raises:
        BackendNotFoundError: there is none of this name.
        BackendError: its profile cannot be read, or has an invalid entry.
    """
    text = os.fspath(name)
    if text in REGISTERED:
        return REGISTERED[text]
    if text in _built_in():
        return _read_built_in(text)
    if text.endswith(SUFFIX):
        return with_known_types(read_backend(text, table_of), text)
    if text in _plugged():
        return _load_plugin(text)
    names = backend_names()
    raise BackendNotFoundError(
        f"no backend named {text!r}{did_you_mean(text, names)} "
        f"(there are {', '.join(names)}; a profile of your own is a file that ends with {SUFFIX})"
    )


def register_backend(
    backend: Backend | str | os.PathLike[str] | Mapping[str, Any], *, replace: bool = False
) -> Backend:
    """Register a backend, a TOML file, or the table of such a file, and return the backend.

    Raises:
        BackendError: the name is taken (`replace=True` takes it over), or the profile is wrong.
    """
    if isinstance(backend, str | os.PathLike):
        backend = with_known_types(read_backend(backend, table_of), os.fspath(backend))
    elif isinstance(backend, Mapping):
        backend = with_known_types(backend_of(backend, "the profile", table_of), "the profile")
    if backend.name in backend_names() and not replace:
        raise BackendError(f"there is a backend {backend.name!r} already")
    REGISTERED[backend.name] = backend
    return backend


def unregister_backend(name: str) -> None:
    """Remove a backend that `register_backend` added."""
    REGISTERED.pop(name, None)


def table_of(name: str) -> Mapping[str, Any]:
    """Return the table of a profile to extend: a built-in one, or a file.

    Raises:
        BackendNotFoundError: there is none of this name.
    """
    path = name if name.endswith(SUFFIX) else _built_in().get(name)
    if path is None:
        raise BackendNotFoundError(
            f"no profile named {name!r} to extend{did_you_mean(name, _built_in())} "
            f"(there are {', '.join(_built_in())}, and files that end with {SUFFIX})"
        )
    return extended(read_table(path), path, table_of)


@cache
def _built_in() -> Mapping[str, str]:
    with os.scandir(_PROFILES) as entries:
        files = sorted(entry.path for entry in entries if entry.name.endswith(SUFFIX))
    return {os.path.basename(path).removesuffix(SUFFIX): path for path in files}


@cache
def _read_built_in(name: str) -> Backend:
    return read_backend(_built_in()[name], table_of)


@cache
def _plugged() -> Mapping[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}


def _named(found: object) -> str:
    return repr(found.name) if isinstance(found, Backend) else f"a {type(found).__name__}"


@cache
def _load_plugin(name: str) -> Backend:
    """Return the backend of an entry point: a Backend, or the path of a TOML file."""
    point = _plugged()[name]
    where = f"entry point {point.value!r} of {point.dist.name if point.dist else '?'}"
    try:
        found = point.load()
    except RAISED as error:
        raise BackendError(
            f"backend {name!r} cannot be loaded from {where}: {type(error).__name__}: {error}"
        ) from error
    if isinstance(found, str | os.PathLike):
        found = with_known_types(read_backend(found, table_of), os.fspath(found))
    if not isinstance(found, Backend) or found.name != name:
        raise BackendError(f"{where}: expected a backend named {name!r}, found {_named(found)}")
    return found
