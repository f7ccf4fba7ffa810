"""Registered classes, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, TypeVar

import tiered
from tiered.compat.onnx_passes.kinds import PassKind
from tiered.passes import Pass
from tiered.passes.interface.registry import registry

AnyClass = TypeVar("AnyClass", bound="type[PassKind]")

GROUPS: Final[dict[str, list[type[PassKind]]]] = {}
"""The registered classes, by their own names and by the names of their groups."""


class ComposePass(PassKind):
    """Passes in order: `__passes__`, repeated until no change if `__exhaustive__`."""

    rank: ClassVar[int] = 6

    __passes__: ClassVar[Sequence[Any]] = ()
    __exhaustive__: ClassVar[bool] = False

    def _pass_of_kind(self) -> Pass:
        name, passes = type(self).__name__, collect(self.__passes__)
        if self.__exhaustive__:
            return tiered.Fixpoint(passes, name=name)
        return tiered.Sequential(passes, name=name)


class Streamline(ComposePass):
    """Move scales and offsets into thresholds: the safe rules, until no change."""

    __passes__ = ("streamline",)


def pass_of(cls: type[PassKind]) -> Pass:
    """Return a pass of tiered that runs a class."""
    return cls().as_pass()


def register(name_or_group: str | None = None) -> Callable[[AnyClass], AnyClass]:
    """Register a class by its name, and in a group if another name is given.

    The pass is made at its first use.

    Raises:
        UsageError: another pass has the name of the class or of the group.
    """

    def decorate(cls: AnyClass) -> AnyClass:
        name = cls.__name__
        if name_or_group is not None:
            registry.check_alias(name_or_group, name)
        if GROUPS.get(name) != [cls]:
            where = f"{cls.__module__}.{cls.__qualname__}"
            registry.register_later(name, where, lambda: pass_of(cls))
            GROUPS[name] = [cls]
        if name_or_group is not None and name_or_group != name:
            GROUPS.setdefault(name_or_group, []).append(cls)
            registry.add_to_alias(name_or_group, name)
        return cls

    return decorate


def collect(names: Iterable[str | type[PassKind] | Pass]) -> list[Pass]:
    """Return the passes of names, groups, classes and passes, in that order, or of one name.

    The groups of onnx-passes are pipelines of tiered's passes; your own groups come first.
    """
    passes: list[Pass] = []
    for item in [names] if isinstance(names, str) else names:
        if isinstance(item, Pass):
            passes.append(item)
        elif isinstance(item, type):
            passes.append(pass_of(item))
        elif item in GROUPS:
            passes += map(pass_of, GROUPS[item])
        else:
            passes += tiered.parse_pipeline(item).passes
    return passes
