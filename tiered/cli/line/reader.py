"""The reader of the command line: from its words to the values of arguments and options.

--name value, --name=value, -n value, -nvalue     an option; `_` in a name is `-`
-ab                                                two switches
--list a --list b                                  a list
--                                                 only arguments follow
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

from tiered.cli.effects import check_effects
from tiered.cli.line.declaration import DeclaredCommand, DeclaredParameter
from tiered.support.errors import UsageError
from tiered.support.option_text import Word
from tiered.support.records import Record
from tiered.support.typed_options import convert

_NUMBER: Final = re.compile(r"-\.?[0-9].*")
_SWITCHED: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
OPTION: Final = "config"
"""The option with a file of options."""


class WrongLine(Exception):
    """A command line that does not fit what the command declares.

    Attributes:
        unknown: the option that no command has, if that is what is wrong.
    """

    def __init__(self, text: str, unknown: str = "") -> None:
        super().__init__(text)
        self.unknown = unknown


@runtime_checkable
class Surrounding(Protocol):
    """A group of options that says what the command runs in."""

    def around(self) -> contextlib.AbstractContextManager[None]:
        """Return it."""


class CommandLine(Record):
    """A command line that is read: the command, and a value for each argument and option.

    Attributes:
        values: by the name of the parameter or field.
        given: the names of those that were typed.
        typed: the flags that were typed.
        rest: the words for the last argument, if it takes all that is left.
    """

    command: DeclaredCommand
    values: Mapping[str, Any]
    given: frozenset[str]
    typed: frozenset[str]
    rest: tuple[str, ...]

    def call(self) -> int | None:
        """Call the command.

        Raises:
            UsageError: an option has no effect beside the others.
        """
        groups = self.command.groups
        rules = [rule for group in groups.values() for rule in getattr(group, "EFFECTS", ())]
        check_effects(rules, self.command.options, self.values, self.typed)
        arguments = [self.values[each.name] for each in self.command.arguments]
        named: dict[str, Any] = {of: {} for of in groups}
        for each in self.command.options:
            (named[each.of] if each.of else named)[each.name] = self.values[each.key]
        for of, group in groups.items():
            named[of] = group(**named[of])
        if self.command.takes_rest:
            arguments.pop()
        with contextlib.ExitStack() as around:
            for group in named.values():
                if isinstance(group, Surrounding):
                    around.enter_context(group.around())
            return self.command.function(*arguments, *self.rest, **named)


def read(command: DeclaredCommand, tokens: Sequence[str]) -> CommandLine:
    """Read the words after a command, and the file of --config.

    Raises:
        WrongLine: they do not fit the command.
        UsageError: the word after an option that may have a value is neither one nor a file.
    """
    reading = _LineReading(command)
    reading.read(tokens)
    values = {name: _value(*reading.said[name]) for name in reading.said}
    given = frozenset(values)
    if OPTION in given:
        from tiered.cli.line.config_file import options_in_file

        in_file: dict[str, list[tuple[str, Any]]] = {}
        for each, entries in options_in_file(command, values[OPTION]):
            if each.key not in given:
                said = in_file.setdefault(each.key, [])
                said += [(each.names[0], entry) for entry in entries]
                values[each.key] = _value(each, said)
    values |= _of_arguments(command, reading.words)
    for each in (*command.arguments, *command.options):
        if each.key in values:
            continue
        if each.is_required:
            raise _missing(command, each.names[0])
        values[each.key] = each.option.default
    rest = tuple(reading.words[len(command.arguments) - 1 :]) if command.takes_rest else ()
    return CommandLine(command, values, given, frozenset(reading.typed), rest)


class _LineReading:
    """The state of a reader: what was said of each option, and the words without a flag."""

    def __init__(self, command: DeclaredCommand) -> None:
        self.command = command
        self.said: dict[str, tuple[DeclaredParameter, list[tuple[str, Any]]]] = {}
        self.typed: list[str] = []
        self.words: list[str] = []
        self.known: dict[str, tuple[DeclaredParameter, bool]] = {}
        for each in command.options:
            self.known |= dict.fromkeys(each.names, (each, True))
            self.known |= {each.off: (each, False)} if each.off else {}

    def read(self, tokens: Iterable[str]) -> None:
        pending = deque(tokens)
        while pending:
            token = pending.popleft()
            if token == "--":
                self.words += pending
                return
            if is_flag(token):
                self._option(token, pending)
            else:
                self.words.append(token)

    def _option(self, token: str, pending: deque[str]) -> None:
        name, text = _split(token)
        if name not in self.known:
            raise self._unknown(name, token)
        each, is_on = self.known[name]
        if each.is_switch:
            if text is not None and token[:2] != "--" and token[2:3] != "=":
                if f"-{text[0]}" not in self.known:  # -q3 and -q- would be words and `--`
                    raise self._unknown(f"-{text[0]}", f"-{text}")
                pending.appendleft(f"-{text}")  # -ab is -a -b
                text = None
            self._note(each, name, is_on if text is None else _switched(name, text) is is_on)
            return
        if text is None and each.flags.alone:
            text = self._optional(each, name, pending)
        elif text is None:
            if not pending or is_flag(pending[0]):
                raise _missing(self.command, name)
            text = pending.popleft()
        self._note(each, name, text)

    def _optional(self, each: DeclaredParameter, name: str, pending: deque[str]) -> str:
        """Return the value of an option that may have one: the next word, if it can be one.

        Raises:
            UsageError: the next word is neither a value nor looks like a file.
        """
        follows = pending[0] if pending else ""
        if follows[:1] in ("", "-"):
            return each.flags.alone
        assert each.flags.accepts is not None, f"{name} says what it accepts"
        if each.flags.accepts(follows):
            return pending.popleft()
        if os.sep in follows or "." in follows or os.path.exists(follows):
            return each.flags.alone
        raise UsageError(
            f"{name} {follows}: {follows!r} is neither {each.flags.expected} nor a file; type "
            f"{name}={follows} for a value, ./{follows} for a file"
        )

    def _note(self, each: DeclaredParameter, name: str, value: Any) -> None:
        entries = self.said.setdefault(each.key, (each, []))[1]
        if entries and not each.is_list:
            raise WrongLine(f"Parameter {name} specified multiple times")
        entries.append((name, value))
        self.typed.append(name)

    def _unknown(self, name: str, token: str) -> WrongLine:
        from difflib import get_close_matches

        near = get_close_matches(name, self.known, n=1, cutoff=0.6) if len(name) > 2 else []
        hint = f". Did you mean {near[0]}?" if near else ""
        return WrongLine(f"Unknown option: {token.partition('=')[0]}{hint}", unknown=token)


def is_flag(token: str) -> bool:
    """Return whether a word names options: it begins with a dash, and is no number."""
    return token[:1] == "-" and token != "-" and _NUMBER.fullmatch(token) is None


def _split(token: str) -> tuple[str, str | None]:
    """Return the name of an option, and the value that is in the same word."""
    if token[:2] == "--":
        name, equals, text = token.partition("=")
        return f"--{name[2:].replace('_', '-')}", text if equals else None
    return token[:2], token[2:].removeprefix("=") if len(token) > 2 else None


def _switched(name: str, text: str) -> bool:
    found = _SWITCHED.get(text.lower())
    if found is None:
        raise WrongLine(f'Invalid value for {name}: unable to convert "{text}" into bool')
    return found


def _of_arguments(command: DeclaredCommand, words: Sequence[str]) -> dict[str, Any]:
    """Return the values of the arguments, but for the one that takes the rest."""
    named = command.arguments[:-1] if command.takes_rest else command.arguments
    if not command.takes_rest and len(words) > len(named):
        raise WrongLine(f"Unused Tokens: {list(words[len(named) :])}")
    pairs = zip(named, words, strict=False)
    return {each.name: _value(each, [(each.names[0], word)]) for each, word in pairs}


def _value(each: DeclaredParameter, said: Sequence[tuple[str, Any]]) -> Any:
    """Return the value of an option, of what was said of it.

    Raises:
        WrongLine: it is of another type.
    """
    if each.is_list:
        entries = [str(text) for _, text in said]
        if each.flags.splits:
            entries = [part for entry in entries for part in entry.split(",") if part]
        return tuple(entries)
    name, given = said[-1]
    try:
        # "none" is a number that is not set, but a name as any other.
        kind = str if each.kind is str else each.option.type
        value = convert(Word(given) if isinstance(given, str) else given, kind)
    except ValueError:
        raise _wrong(each, name, given) from None
    if each.flags.check is not None:
        each.flags.check(value)
    return value


def _wrong(each: DeclaredParameter, name: str, given: Any) -> WrongLine:
    if each.choices:
        from difflib import get_close_matches

        near = get_close_matches(str(given), each.choices, n=1)
        choices = ", ".join(f'"{choice}"' for choice in each.choices)
        hint = f'. Did you mean "{near[0]}"?' if near else ""
        return WrongLine(f'Invalid value "{given}" for {name}. Choose from: {choices}{hint}')
    kind = getattr(each.kind, "__name__", each.kind)
    return WrongLine(f'Invalid value for {name}: unable to convert "{given}" into {kind}')


def _missing(command: DeclaredCommand, name: str) -> WrongLine:
    return WrongLine(f'Command "{command.name}" parameter {name} requires an argument')
