"""Options that have an effect only beside others: what has no effect in a run is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from dataclasses import MISSING, Field, fields
from typing import Any, Final, NamedTuple

from tiered.support.errors import UsageError

_TYPED: Final[ContextVar[frozenset[str]]] = ContextVar("typed options", default=frozenset())
"""The flags of the command line that runs."""


def note_typed(flags: Collection[str]) -> None:
    """Remember the flags of a command line: one may be typed with its own default value."""
    _TYPED.set(frozenset(flags))


class Effect(NamedTuple):
    """Options, and what they need to have an effect.

    Attributes:
        options: the names of their fields.
        needs: what they need, in the words of the command line.
        holds: whether a run has that; called with a function that returns the value of a field.
    """

    options: tuple[str, ...]
    needs: str
    holds: Callable[[Callable[[str], Any]], object]


def check_effects(effects: Iterable[Effect], *given: Any, **others: Any) -> None:
    """Check that each option that was typed, or differs from its default, has an effect.

    Args:
        effects: the rules of a command.
        given: its options, instances of dataclasses.
        others: options of none of these, by name, which rules may ask for.

    Raises:
        UsageError: one has none.
    """
    known = {field.name: (options, field) for options in given for field in fields(options)}

    def value_of(name: str) -> Any:
        if name in others:
            return others[name]
        return getattr(known[name][0], name)

    for effect in effects:
        for name in effect.options:
            value, flag = value_of(name), _flag(name, value_of(name))
            is_given = value != _default(known[name][1]) or flag in _TYPED.get()
            if is_given and not effect.holds(value_of):
                raise UsageError(f"{flag} has no effect: it needs {effect.needs}")


def _default(field: Field[Any]) -> Any:
    assert field.default is not MISSING, f"the option {field.name} has a default"
    return field.default


def _flag(name: str, value: object) -> str:
    return f"--{'no-' if value is False else ''}{name.rstrip('_').replace('_', '-')}"
