"""The modules of PopRT's passes: `from tiered.compat.poprt.passes.float_to_half import Float2Half`.

There are no files of them: a module has the class of the pass of its name, by any of its names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Final

from tiered.compat.poprt.own_passes import OWN_PASSES
from tiered.passes.interface.registry import registry, snake_case
from tiered.support.aliases import ALIASES
from tiered.support.errors import PassNotFoundError, UsageError

_OF_SEVERAL: Final = ("apply_ir_pass", "workarounds")
"""The modules with the classes of several passes, which may have any name."""

_MISNAMED: Final = {
    "replace_clip_empty_inputs": "ReplaceHardSwish",
    "shape_inference": "ReplacePow",
}
"""The classes of modules that have the name of another pass in PopRT, by the module."""


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
        if _MISNAMED.get(own) == name:
            return partial(self._get_pass, own)
        if _is_pass(name) and (own in _OF_SEVERAL or _canonical(name) == _canonical(own)):
            return partial(self._get_pass, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def class_of(name: str, get_pass: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what makes a pass, by the name of its class; None if no pass has it."""
    return partial(get_pass, name) if name[:1].isupper() and _is_pass(name) else None


def _is_pass(name: str) -> bool:
    if name in OWN_PASSES:
        return True
    try:
        registry.resolve(name)
    except (PassNotFoundError, UsageError):
        return False
    return True


def _canonical(name: str) -> object:
    """Return what passes of equal names have in common."""
    return OWN_PASSES.get(name) or registry.resolve(name)


def add_modules(package: str, get_pass: Callable[..., Any]) -> None:
    """Add the modules of all passes below a package, so that they can be imported."""
    for known in (*registry.names(), *ALIASES, *OWN_PASSES, *_OF_SEVERAL):
        full = f"{package}.{snake_case(known)}"
        sys.modules.setdefault(full, PassModule(full, get_pass))
