"""Look passes up by name, list them, and register new ones."""

from __future__ import annotations

from tiered.passes.base import Pass
from tiered.passes.interface.pass_info import Runnable
from tiered.passes.interface.registry import registry
from tiered.support.errors import UsageError


def pass_of(name: str) -> Pass:
    """Return a pass by its name or another system's name for it.

    Raises:
        PassNotFoundError: no pass has this name.
        UsageError: it is the name of several passes.
    """
    return _checked(registry.load(name))


def pass_named(name: str) -> Pass:
    """Return the pass of a canonical name; its file is loaded when it runs, if that can wait.

    Raises:
        PassNotFoundError: no pass has this name.
    """
    return _checked(registry.named(name))


def get_registered_passes() -> dict[str, Pass]:
    """Return every pass by its canonical name; this imports them all."""
    return {name: _checked(found) for name, found in registry.load_all().items()}


def pass_names() -> tuple[str, ...]:
    """Return the canonical names of all passes, sorted, without importing any."""
    return registry.names()


def register(pass_: Pass, *, replace: bool = False) -> Pass:
    """Register a script's own pass under its name, and return it; also a decorator.

    Raises:
        UsageError: the name is taken; `replace=True` replaces a pass registered before.
    """
    registry.register(pass_, replace=replace)
    return pass_


def _checked(found: Runnable) -> Pass:
    if not isinstance(found, Pass):
        raise UsageError(f"{found.info.name!r} is registered as a {type(found).__name__}, no Pass")
    return found
