"""Fast loading: names that load at first use, a paused collector, no needless signatures."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeGuard


def load_later(
    package: str, *, moved: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose public names load on first use.

    The names are written once, in the `__init__.pyi` beside the package's `__init__.py`: type
    checkers read it, and so does this function, at the first name that is asked for.

    Args:
        package: its name.
        moved: a module with `MOVED`, the new place of each name that left the package: these load
            from there, with a DeprecationWarning.
    """

    @functools.cache
    def module_of() -> dict[str, str]:
        module: Any = sys.modules[package]
        path = os.path.join(os.path.dirname(module.__file__), "__init__.pyi")
        stub: bytes = module.__loader__.get_data(path)
        return public_names(stub.decode())

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(module_of())
        if not name.startswith("__") and name not in module_of() and moved is not None:
            place = importlib.import_module(moved).MOVED.get(name)
            if place is not None:
                return _moved(f"{package}.{name}", place)
        if name.startswith("__") or name not in module_of():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Loaded code is no garbage, but the collector would visit it again and again.
        with paused_collector():
            value = getattr(importlib.import_module(module_of()[name]), name)
        vars(sys.modules[package])[name] = value
        return value

    return load, lambda: sorted({*module_of(), *vars(sys.modules[package])})


class LoadedLater:
    """A function whose module is loaded when it is first needed.

    As an attribute of a class it is a method; the class itself has the function, for `help`.
    """

    __slots__ = ("_function", "_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._loaded()(*args, **named)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        function = self._loaded()
        return function if instance is None else MethodType(function, instance)

    def _loaded(self) -> Callable[..., Any]:
        if self._function is None:
            self._function = getattr(importlib.import_module(self._module), self._name)
        return self._function


def _moved(old: str, new: str) -> Any:
    """Return the object of a name that moved, with a warning that names the new place."""
    warn_of_move(old, new, stacklevel=4)
    module, _, name = new.rpartition(".")
    return getattr(importlib.import_module(module), name)


def warn_of_move(old: str, new: str, *, stacklevel: int) -> None:
    """Warn of an old name; `stacklevel` as of `warnings.warn`, with 1 for this function."""
    warnings.warn(
        f"{old} is {new} now; the old name goes with the next release",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def extension(name: str) -> Any:
    """Return a module of `tiered.extensions`, which an installation may lack.

    Raises:
        UsageError: it lacks it.
    """
    try:
        return importlib.import_module(f"tiered.extensions.{name}")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("tiered.extensions"):
            raise
        from tiered.support.errors import UsageError

        missing = f"this needs tiered.extensions.{name}, which is not installed"
        raise UsageError(f"{missing}; install all of tiered") from error


class MovedPackages:
    """Finds packages and modules at their other names: old ones with a warning, short ones always.

    It stands last on `sys.meta_path`, so it is asked for what nothing else finds.
    """

    def __init__(self, package: str, moved: str) -> None:
        """Take the package, and the module with `MOVED_PACKAGES` and `SHORT_NAMES`."""
        self._package = package
        self._moved = moved

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        """Return how to load a module of an old name, or None."""
        package, _, inside = name.partition(".")
        if package != self._package or not inside:
            return None
        names = importlib.import_module(self._moved)
        moved: Mapping[str, str] = names.MOVED_PACKAGES
        short: Mapping[str, str] = names.SHORT_NAMES
        other, _, below = inside.partition(".")
        place = moved.get(other) or short.get(other)
        if place is None:
            return None
        new = ".".join(filter(None, (package, place, below)))
        loader: Any = _OtherName(new, is_old=other in moved)
        return ModuleSpec(name, loader, is_package=True)


class _OtherName:
    """Loads a module whose names are those of another."""

    def __init__(self, new: str, *, is_old: bool) -> None:
        self._new = new
        self._is_old = is_old

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the names of the other one."""
        other = importlib.import_module(self._new)
        if self._is_old:
            warn_of_move(module.__name__, self._new, stacklevel=3)
        vars(module).update(__getattr__=lambda name: getattr(other, name), __doc__=other.__doc__)


def public_names(stub: str) -> dict[str, str]:
    """Return the modules of the names that a stub re-exports: `from module import name as name`."""
    modules: dict[str, str] = {}
    for statement in re.split(r"^from ", stub, flags=re.MULTILINE)[1:]:
        module, _, imported = statement.partition(" import ")
        modules.update((name, module) for name in re.findall(r"(\w+) as \1\b", imported))
    return modules


def is_plain(function: Callable[..., Any]) -> TypeGuard[FunctionType]:
    """Return whether a function is a plain one, so that its code has its parameters.

    `inspect.signature` takes wrappers into account, and far longer.
    """
    return type(function) is FunctionType and not vars(function)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collector: it would visit every node of a large graph, again and again.

    If the block loaded code, all objects then count as old ones, as code is never garbage: the
    collector would visit each of them three times first. A block that loads nothing leaves the
    generations as they are, so that what a program drops between two calls is still found.
    """
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if len(sys.modules) > modules and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
