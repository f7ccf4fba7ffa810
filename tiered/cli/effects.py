"""Options that have an effect only beside others: what has no effect in a run is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from tiered.cli.line.declaration import DeclaredParameter


class Effect(NamedTuple):
    """Options, and what they need to have an effect: an entry of `EFFECTS` of a class of options.

    Attributes:
        options: their names.
        needs: what they need, in the words of the command line.
        holds: whether a run has that; called with a function that returns the value of any argument
            or option of the command.
        typed: whether it is about typed options alone: a file of --config may have more.
    """

    options: tuple[str, ...]
    needs: str
    holds: Callable[[Callable[[str], Any]], object]
    typed: bool = False


def check_effects(
    effects: Iterable[Effect],
    declared: Iterable[DeclaredParameter],
    values: Mapping[str, Any],
    typed: Collection[str],
) -> None:
    """Check that each option that was typed, or differs from its default, has an effect.

    Args:
        effects: the rules of a command.
        declared: its options.
        values: those of all its arguments and options, by name.
        typed: the flags that were typed: one may be typed with its own default value.

    Raises:
        UsageError: one has none.
    """
    by_name = {each.key: each for each in declared}
    for effect in effects:
        for name in effect.options:
            each, value = by_name[name], values[name]
            is_typed = not {*each.names, each.off}.isdisjoint(typed)
            is_given = is_typed or (value != each.option.default and not effect.typed)
            if is_given and not effect.holds(values.__getitem__):
                flag = each.off if value is False and each.off else each.names[0]
                raise UsageError(f"{flag} has no effect: it needs {effect.needs}")
