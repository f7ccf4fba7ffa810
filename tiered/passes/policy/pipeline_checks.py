"""Checks of a pipeline: functions of the model that must hold before, between and after passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tiered.passes.interface.hooks import ReadOnly
from tiered.passes.interface.registry import registry
from tiered.support.errors import RAISED, PassError, UsageError

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes.interface.pass_info import Runnable


class Check(str):
    """A check by its name, so that a pipeline with checks is written and compared like any other.

    It is an analysis pass, under its own name, or a function of the model, which no text can hold:
    its name is then in angle brackets. It fails by raising or by returning False.
    """

    __slots__ = ("function", "suppressed")

    function: Callable[[Model], object]
    suppressed: bool

    def __new__(
        cls, name: str, function: Callable[[Model], object], suppressed: bool = False
    ) -> Check:
        check = super().__new__(cls, name)
        check.function = function
        check.suppressed = suppressed
        return check

    def __deepcopy__(self, memo: dict[int, Any]) -> Check:
        return self

    def __eq__(self, other: object) -> bool:
        is_other = isinstance(other, Check) and self.function != other.function
        return not is_other and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other  # str has its own, which compares the names alone

    __hash__ = str.__hash__

    def of(self, suppressed: bool) -> Check:
        """Return the same check, suppressed or not."""
        return Check(self, self.function, suppressed)

    def hold(self, model: Model, kind: type[PassError], when: str) -> None:
        """Apply the check to the model, which it cannot edit.

        Raises:
            PassError: of the given kind: the check failed; `when` says after what.
        """
        failed = f"check {str.__str__(self).strip('<>')} failed {when} of {model.label}"
        try:
            with ReadOnly(model, f"check {self} is read_only at it"):
                verdict = self.function(model)
        except RAISED as error:
            raise kind(f"{failed}: {type(error).__name__}: {error}") from error
        if verdict is not None and not verdict:
            raise kind(f"{failed}: it returned {verdict!r}")


def checks_of(given: object) -> list[Check]:
    """Return the checks that were given: functions of the model, analysis passes, or their names.

    Raises:
        UsageError: it is none of these.
        PassNotFoundError: no pass has this name.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"checks takes a list of checks, not {given!r}")
    return [_check_of(item) for item in given]


def _check_of(given: object) -> Check:
    if isinstance(given, Check):
        return given
    if isinstance(given, str):
        if given.startswith("<"):
            raise UsageError(f"check {given} is a function: give it in Python, not as text")
        given = registry.load(given)
    if hasattr(given, "info"):
        return _of_pass(given)
    if not callable(given):
        raise UsageError(f"checks takes functions of the model and analysis passes, not {given!r}")
    name = getattr(given, "__name__", None) or type(given).__name__
    try:
        inspect.signature(given).bind(None)
    except TypeError as error:
        raise UsageError(f"check {name} takes one argument, the model: {error}") from error
    return Check(f"<{name.strip('<>')}>", given)


def _of_pass(pass_: Any) -> Check:
    if not pass_.info.analysis:
        raise UsageError(f"{pass_.name} is no analysis: a check must not change the model")
    checked: Runnable = pass_
    return Check(checked.name, checked.apply)
