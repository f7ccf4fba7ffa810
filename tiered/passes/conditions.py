"""Preconditions and postconditions of passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tiered.graph import Graph
from tiered.passes.interface.hooks import ReadOnly
from tiered.rewriter import Skip
from tiered.support.errors import (
    RAISED,
    PassError,
    PostconditionError,
    PreconditionError,
    UsageError,
)
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.graph import Graph, Model

Condition = Callable[[Any, "PassContext"], object]


class Conditions(Record):
    """Functions (graph, ctx) of a pass, of a module pass (model, ctx).

    A condition fails by raising, or by returning False; None and True are fine. A precondition may
    also return a `Skip`: there is nothing to do here, which is no error.
    """

    precondition: Condition | None = None
    postcondition: Condition | None = None

    def __bool__(self) -> bool:
        return self.precondition is not None or self.postcondition is not None

    def around(
        self, run: Callable[[], object], subject: Graph | Model, ctx: PassContext, name: str
    ) -> object:
        """Return the result of `run()` between the two conditions, or the Skip of the first.

        Raises:
            PreconditionError: the precondition does not hold.
            PostconditionError: the postcondition does not hold.
        """
        if (skip := self.skip_of(subject, ctx, name)) is not None:
            return skip
        outcome = run()
        self.hold_after(subject, ctx, name)
        return outcome

    def skip_of(self, subject: Graph | Model, ctx: PassContext, name: str) -> Skip | None:
        """Return the Skip of the precondition, None if the pass may start; raises as above."""
        if self.precondition is None:
            return None
        verdict = _verdict(self.precondition, subject, ctx, PreconditionError, name)
        return verdict if isinstance(verdict, Skip) else None

    def hold_after(self, subject: Graph | Model, ctx: PassContext, name: str) -> None:
        """Check the postcondition; raises as above."""
        if self.postcondition is None:
            return
        verdict = _verdict(self.postcondition, subject, ctx, PostconditionError, name)
        if isinstance(verdict, Skip):
            what = _what(self.postcondition, PostconditionError, name)
            raise PostconditionError(f"{what} of {_named(subject)}: {verdict}")


NO_CONDITIONS = Conditions()

_METHODS: Final = ("precondition", "postcondition", "requires", "ensures")
"""Names of methods that are conditions: here, and in torch.fx and onnx-passes."""


def _verdict(
    condition: Condition,
    subject: Graph | Model,
    ctx: PassContext,
    kind: type[PassError],
    name: str,
) -> object:
    what = _what(condition, kind, name)
    model: Any = getattr(subject, "model", subject)
    try:
        with ReadOnly(model, f"{label_of(condition)} is checking it"):
            verdict = condition(subject, ctx)
            holds = verdict is None or bool(verdict)
    except RAISED as error:
        raise kind(f"{what} of {_named(subject)}: {type(error).__name__}: {error}") from error
    if not holds:
        raise kind(f"{what} of {_named(subject)}, which returned {verdict!r}")
    return verdict


def _what(condition: Condition, kind: type[PassError], name: str) -> str:
    """Return the name of a condition in messages: "MyPass.precondition", if it is a method."""
    label = label_of(condition)
    word = "precondition" if kind is PreconditionError else "postcondition"
    return f"{name}.{label}" if label in _METHODS else f"{name}: {word} {label}"


def _named(subject: Graph | Model) -> str:
    label = getattr(subject, "label", None)
    return str(label) if label else f"graph {getattr(subject, 'name', '')!r}"


def label_of(function: Callable[..., Any]) -> str:
    """Return the name of a function in messages."""
    return getattr(function, "__name__", None) or type(function).__name__


def condition_of(given: object, argument: str, name: str) -> Condition | None:
    """Return the condition given to a decorator, as a function of two arguments.

    Raises:
        UsageError: it is no function of one or two arguments.
    """
    if given is None:
        return None
    if not callable(given):
        hint = "; required= takes names of passes" if argument == "precondition" else ""
        raise UsageError(f"{name}: {argument} takes a function (graph, ctx), not {given!r}{hint}")
    return takes_context(given, f"{name}: {argument}")


def takes_context(function: Callable[..., Any], what: str) -> Condition:
    """Return the function with a second parameter for the context, which it may lack."""
    signature = inspect.signature(function)
    try:
        signature.bind(None, None)
    except TypeError:
        pass
    else:
        return function
    try:
        signature.bind(None)
    except TypeError as error:
        raise UsageError(f"{what} takes a function (graph, ctx) or (graph): {error}") from error

    def without_context(subject: Any, _: PassContext) -> object:
        return function(subject)

    without_context.__name__ = label_of(function)
    return without_context
