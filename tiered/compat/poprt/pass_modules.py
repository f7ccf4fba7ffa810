"""The modules of PopRT's passes: `from tiered.compat.poprt.passes.float_to_half import Float2Half`.

There are no files of them: a module has the class of the pass of its name, by any of its names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from tiered.compat.poprt.own_passes import APPLY_PASSES
from tiered.passes.interface.registry import registry
from tiered.support.aliases import ALIASES
from tiered.support.errors import PassNotFoundError, UsageError


class PassModule(ModuleType):
    """The module of one pass.

    Args:
        name: of the module.
        get_pass: returns a pass of PopRT's by its name.
    """

    def __init__(self, name: str, get_pass: Callable[..., Any]) -> None:
        super().__init__(name, f"The pass {name.rpartition('.')[2]}, by the name of its class.")
        self._get_pass = get_pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return what makes the pass, by the name of its class.

        Raises:
            AttributeError: it is no name of this pass.
        """
        own = self.__name__.rpartition(".")[2]
        made = class_of(name, self._get_pass)
        if made is None or _canonical(name) != _canonical(own):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return made


def class_of(name: str, get_pass: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what makes a pass, by the name of its class; None if no pass has it."""
    if not name[:1].isupper():
        return None
    if name in APPLY_PASSES:
        return partial(get_pass, name)
    try:
        registry.resolve(name)
    except (PassNotFoundError, UsageError):
        return None
    return partial(get_pass, name)


def _canonical(name: str) -> tuple[str, ...]:
    """Return the canonical names of a pass that exists."""
    return APPLY_PASSES if name in APPLY_PASSES else registry.resolve(name)


def add_modules(package: str, get_pass: Callable[..., Any]) -> None:
    """Add the modules of all passes below a package, so that they can be imported."""
    for name in (*registry.names(), *ALIASES, *APPLY_PASSES):
        if name.islower() and name.isidentifier():
            full = f"{package}.{name}"
            sys.modules.setdefault(full, PassModule(full, get_pass))
