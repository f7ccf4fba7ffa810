"""What keeps loading short: names that load on first use, no collector, no needless signatures."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeGuard


def load_later(
    package: str, home: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose public names load on first use.

    Args:
        package: its name.
        home: the names by the modules below it that define them.
    """
    module_of = {name: module for module, names in home.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Code is no garbage: the collector would look at all that is loaded, again and again.
        with paused_collector():
            value = getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)
        vars(sys.modules[package])[name] = value
        return value

    return load, lambda: sorted(sys.modules[package].__all__)


def is_plain(function: Callable[..., Any]) -> TypeGuard[FunctionType]:
    """Tell whether the code of a function says what it takes: nothing wraps it or speaks for it.

    `inspect.signature` knows of all that may, and takes far longer.
    """
    return type(function) is FunctionType and not vars(function)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collector: it would visit every node of a large graph, again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
