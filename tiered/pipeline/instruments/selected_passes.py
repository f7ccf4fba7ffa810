"""The passes that an instrument selects: all, none, or those of some names and globs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.registry import is_glob, registry
from tiered.support.errors import UsageError

Which = bool | Iterable[str]


def chooser(which: Which, what: str) -> Callable[[PassInfo], bool]:
    """Return a predicate of the selected passes.

    Args:
        which: True for all, False for none, or names of any kind and globs.
        what: the argument, for messages.

    Raises:
        UsageError: it is a single string.
        PassNotFoundError: an unknown name, or a glob that matches no pass.
    """
    if isinstance(which, bool):
        return lambda _: which
    if isinstance(which, str):
        raise UsageError(f"{what} takes a list of passes, not a string: [{which!r}]")
    names: set[str] = set()
    globs: list[str] = []
    for name in which:
        if is_glob(name):
            registry.expand(name)
            globs.append(name)
        else:
            names.update(registry.resolve(name))
    return lambda info: info.name in names or any(fnmatchcase(info.name, glob) for glob in globs)
