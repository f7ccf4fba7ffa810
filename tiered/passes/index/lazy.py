"""Passes made from the index: their files are loaded when they run."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import starmap
from typing import Any, Final

from tiered.passes.interface.pass_info import PassInfo
from tiered.passes.interface.registry import registry
from tiered.passes.kinds.body import Body, BodyPass, Operators, key_of
from tiered.passes.kinds.calling_pass import FunctionPass, ModulePass
from tiered.passes.kinds.decorators import defaults_of
from tiered.passes.kinds.rewrite_pass import RewritePass
from tiered.support.errors import UsageError
from tiered.support.operator_name import operator_name

PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
"""The folder of tiered."""

_KINDS: Final[dict[str, type[BodyPass]]] = {
    "rewrite": RewritePass,
    "function": FunctionPass,
    "module": ModulePass,
}


def later_pass(folder: str, info: PassInfo, operators: tuple[str, ...] | None) -> BodyPass:
    """Return the pass of an entry of the index; its file is loaded at its first run."""
    steps = (*folder.split("/"), info.name)
    info = info._replace(source=f"{os.path.join(PACKAGE, *steps)}.py")
    body = _LaterBody(info, ".".join(("tiered", *steps)), operators)
    return _KINDS[info.kind](info=info, options=defaults_of(info), body=body)


class _LaterBody(Body):
    """A body that is loaded at its first use."""

    def __init__(self, info: PassInfo, module: str, operators: tuple[str, ...] | None) -> None:
        super().__init__(None)
        self._info = info
        self._module = module
        self._written = operators

    @cached_property
    def work(self) -> Any:
        """The rule or the function.

        Raises:
            UsageError: the declarations in the file differ from the index.
        """
        found: Any = registry.load_file(self._module, self._info.source)
        if (
            _without_prose(found.info) != _without_prose(self._info)
            or operators_as_text(found.body.operators) != self._written
            # Conditions are checked before a pass runs, so the index has no pass with any.
            or found.conditions
        ):
            raise UsageError(
                f"{found.info.source} differs from the index of passes: run `make index`"
            )
        return found.body.work

    @cached_property
    def operators(self) -> Operators | None:
        """As of any body."""
        if self._written is None:
            return None
        return tuple(frozenset(map(key_of, names.split())) for names in self._written)


def operators_as_text(found: Operators | None) -> tuple[str, ...] | None:
    """Return sets of operators as the index has them, without those that hold another one."""
    if found is None:
        return None
    least = {needed for needed in found if not any(other < needed for other in found)}
    return tuple(sorted(" ".join(sorted(starmap(operator_name, needed))) for needed in least))


def _without_prose(info: PassInfo) -> PassInfo:
    """Return what decides about a pass.

    Words may be newer than the index, and where the file is depends on how tiered is installed.
    """
    options = tuple(option._replace(doc="") for option in info.options)
    return info._replace(law="", prose="", source="", options=options)
