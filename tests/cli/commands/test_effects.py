"""The options of each command that have an effect only beside others."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.recorded import assert_recorded
from tiered.cli.commands import command_in
from tiered.cli.effects import check_effects
from tiered.cli.line.reader import read
from tiered.support.errors import UsageError


def _needs(text: str) -> str:
    """Return what an option of a command line needs that the line lacks."""
    found = command_in(shlex.split(text))
    assert found is not None
    line = read(*found)
    groups = line.command.groups.values()
    rules = [rule for group in groups for rule in getattr(group, "EFFECTS", ())]
    try:
        check_effects(rules, line.command.options, line.values, line.typed)
    except UsageError as error:
        return str(error).partition(" has no effect: it ")[2]
    return "has an effect"


def test_each_option_has_an_effect_or_says_what_it_needs() -> None:
    """Below a command line are options, each with what the line lacks for it."""

    def said(text: str, below: list[str]) -> Iterator[str]:
        for option in (line.partition(":  ")[0] for line in below if line):
            yield f"{option}:  {_needs(f'{text} {option}')}"
        yield ""

    assert_recorded(Path(__file__).with_name("effects.txt"), {"$": said})
