"""Passes: what they are, how they are written, how they are found."""

from __future__ import annotations

from typing import Any

from tiered.control.report import PassResult
from tiered.passes.base import Pass
from tiered.passes.classes import NodeMapPass, PassBase, PassLike
from tiered.passes.decorators import Declared, function_pass, module_pass, rewrite
from tiered.passes.kinds import FunctionPass, ModulePass, RewritePass
from tiered.passes.lifted import ProtoPass, proto_pass
from tiered.registry import PassInfo, registry
from tiered.rewrite import Skip

__all__ = [
    "Declared",
    "FunctionPass",
    "ModulePass",
    "NodeMapPass",
    "Pass",
    "PassBase",
    "PassInfo",
    "PassLike",
    "PassResult",
    "ProtoPass",
    "RewritePass",
    "Skip",
    "function_pass",
    "get_pass",
    "get_registered_passes",
    "module_pass",
    "pass_names",
    "proto_pass",
    "register",
    "rewrite",
]


def get_pass(name: str, /, **options: Any) -> Pass:
    """Return a pass by its name or another system's name for it, with options.

    Raises:
        PassNotFoundError: no pass has this name.
        OptionError: an unknown option, or a value of the wrong type.
    """
    found = registry.load(name)
    return found.with_options(**options) if options else found


def get_registered_passes() -> dict[str, Pass]:
    """Return every pass by its canonical name; this imports them all."""
    return registry.load_all()


def pass_names() -> tuple[str, ...]:
    """Return the canonical names of all passes, sorted, without importing any."""
    return registry.names()


def register(pass_: Pass, *, replace: bool = False) -> Pass:
    """Make a script's own pass known by its name, and return it; good as a decorator.

    Raises:
        UsageError: the name is taken; `replace=True` takes over what was registered before.
    """
    return registry.register(pass_, replace=replace)
