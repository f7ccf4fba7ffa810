"""Run one command line; errors become messages on stderr and exit codes."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tiered.cli.commands import command_in, command_names
from tiered.cli.line.foreign import HELP, VERSION, answer_to, answer_to_command, from_others
from tiered.cli.line.reader import WrongLine, read
from tiered.cli.line.typed import typing
from tiered.cli.outcome import note_outcome
from tiered.cli.output.failures import (
    BUG,
    CommandFailure,
    failure,
    print_failure,
    short_traceback,
    usage_failure,
)

__tiered_site__ = "the command line"
"""The name of what is set under `run`, for `tiered.passes.policy.selectors.caller`."""

_OTHERS = frozenset(
    {"backend", "certify", "config", "disable", "edit", "load", "out_dir", "passes", "reproducer",
     "require", "verify"}
)  # fmt: skip
"""Options of `tiered optimize` that may run code of plug-ins, or a process of its own."""


class _Call(NamedTuple):
    """What a command line calls, the file that it is about, and whether all its code is ours."""

    function: Callable[[], int | None]
    subject: str | None = None
    is_own: bool = False


def run(tokens: Sequence[str]) -> tuple[int, bool]:
    """Run one command line and print errors on stderr.

    Returns:
        the exit code, and whether the command came to its end with code of tiered alone.
    """
    call = None
    tokens = from_others(tokens, command_names())
    try:
        call = _called(tokens)
        if not call.is_own:
            gc.enable()
        with _no_warnings(), typing(tokens):
            exit_code = call.function()
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code or 0, call.is_own
    except BrokenPipeError:
        raise
    except WrongLine as error:
        found = _wrong(error, tokens)
    except Exception as error:  # noqa: BLE001 - each becomes an exit code and a message
        note_outcome(error)
        found = failure(error, None if call is None else call.subject)
        if found.exit_code == BUG and not {"-v", "--verbose"}.isdisjoint(tokens):
            found = CommandFailure(BUG, f"{found.text}\n{short_traceback(error)}".rstrip())
    return print_failure(found), False


def _called(tokens: Sequence[str]) -> _Call:
    """Return what a command line calls.

    Raises:
        WrongLine: it does not fit the command, or there is no such command.
    """
    from tiered.cli.line.word_completion import ASKED

    if tokens[:1] == [ASKED]:
        return _Call(lambda: _print_lines(tokens[1:]))
    if VERSION in tokens:
        return _Call(lambda: _print_version(tokens))
    found = command_in(tokens if tokens and tokens[0] not in HELP else ())
    if found is None:
        return _Call(lambda: _print_help(""))
    command, words = found
    if not HELP.isdisjoint(words[: words.index("--")] if "--" in words else words):
        return _Call(lambda: _print_help(command.name))
    line = read(command, words)
    subjects = (line.values[each.name] for each in command.arguments if each.names == ("MODEL",))
    is_own = command.name == "optimize" and _OTHERS.isdisjoint(line.given) and not line.rest
    return _Call(line.call, next(subjects, None), is_own)


def _wrong(error: WrongLine, tokens: Sequence[str]) -> CommandFailure:
    """Return the failure of a line that does not fit; options of other tools have an answer."""
    commands = command_names()
    named = next((token for token in tokens if token in commands), None)
    answer = answer_to_command(tokens, commands)
    if answer is None and error.unknown:
        found = answer_to(tokens, error.unknown)
        answer = None if found is None else f"unknown option {error.unknown}: {found}"
    return usage_failure(answer or str(error), f"tiered {named}" if named else "tiered")


def _print_lines(words: Sequence[str]) -> None:
    from tiered.cli.line.word_completion import candidates

    for line in candidates(words):
        _print(line)


def _print_help(command: str) -> None:
    from tiered.cli.line.help import general_help, help_of

    _print((help_of(command) if command else general_help()).rstrip())


def _print_version(tokens: Sequence[str]) -> None:
    if not {"-v", "--verbose"}.isdisjoint(tokens):
        from tiered.cli.version import print_details

        print_details()
        return
    from tiered import __version__

    _print(f"tiered {__version__}")


def _print(text: str) -> None:
    if sys.stdout is not None:
        sys.stdout.write(f"{text}\n")


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Ignore Python's warnings, which are for programmers, unless -W is given."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield
