"""`--load my_passes.py`: the passes and rules of a Python file or module, for this run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

from tiered.support.errors import RAISED, TieredError, UsageError

if TYPE_CHECKING:
    from tiered.passes import Pass


def load_passes(entries: Iterable[str]) -> None:
    """Import files or modules, and register the passes that they define.

    A file runs as any Python program does. A pass that it has registered itself is not registered
    again, and one that it only imports is not its own.

    Raises:
        UsageError: there is no such file or module, it cannot be imported, it defines neither a
            pass nor a rule, or one of its passes has the name of another pass.
    """
    for entry in (part.strip() for text in entries for part in text.split(",")):
        if not entry:
            raise UsageError("--load takes a Python file or a module, not ''")
        _register(entry)


def with_loads(command: str, entries: Iterable[str]) -> str:
    """Return a command with the --load options of the passes that it needs."""
    return " ".join([command, *(f"--load {shlex.quote(entry)}" for entry in entries)])


def _register(entry: str) -> None:
    from tiered.passes.interface.registry import registry
    from tiered.passes.lookup import register

    known = registry.names()
    module = _imported(entry)
    file = module.__file__ or entry
    found = 0
    for pass_ in _passes_in(module):
        is_own = pass_.info.source.startswith(file)
        if is_own or pass_.name not in registry:
            register(pass_)
            found += 1
    if not found and known == registry.names() and not _has_rules(module):
        raise UsageError(
            f"--load {entry!r} defines no pass; expected functions under @rewrite, @function_pass "
            "or @module_pass, or rules of operators"
        )


def _has_rules(module: ModuleType) -> bool:
    """Return whether a module registers rules of operators, in any aspect."""
    from tiered.graph.opset.aspect import REGISTERED_IN

    return module.__name__ in REGISTERED_IN


def _passes_in(module: ModuleType) -> list[Pass]:
    """Return the passes in the variables of a module, each once; no unnamed pipeline."""
    from tiered.passes import Pass
    from tiered.passes.policy.selectors import ANONYMOUS

    found = {id(value): value for value in vars(module).values() if isinstance(value, Pass)}
    return [pass_ for pass_ in found.values() if pass_.name not in ANONYMOUS]


def _imported(entry: str) -> ModuleType:
    """Return the module of a file or of a module's name; a file is imported once."""
    is_file = entry.endswith(".py") or os.sep in entry
    if is_file and not os.path.isfile(entry):
        raise UsageError(f"--load {entry!r}: no such file")
    try:
        return _module_of_file(entry) if is_file else importlib.import_module(entry)
    except TieredError:
        raise
    except ModuleNotFoundError as error:
        if error.name == entry:
            raise UsageError(
                f"--load {entry!r}: no such module; a file is named with its suffix .py"
            ) from error
        raise _failed(entry, error) from error
    except RAISED as error:
        raise _failed(entry, error) from error


def _failed(entry: str, error: BaseException) -> UsageError:
    return UsageError(f"--load {entry!r} cannot be imported: {type(error).__name__}: {error}")


def _module_of_file(path: str) -> ModuleType:
    path = os.path.realpath(path)
    name = f"tiered_loaded_{os.path.splitext(os.path.basename(path))[0]}"
    while (known := sys.modules.get(name)) is not None:  # files of two folders may share a name
        if known.__file__ == path:
            return known
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(path))  # for the modules beside it, as Python does
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.remove(os.path.dirname(path))
    return module
