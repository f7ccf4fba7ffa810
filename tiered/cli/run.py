"""Run one command line; errors become messages on stderr and exit codes."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tiered.cli.effects import note_typed
from tiered.cli.examples import COMMANDS
from tiered.cli.foreign import translated, with_command
from tiered.cli.optional_values import complete
from tiered.cli.output.failures import (
    BUG,
    Failure,
    WrongCommandLine,
    failure,
    print_failure,
    short_traceback,
    usage_failure,
)
from tiered.cli.plain import plain_command


def run(tokens: Sequence[str]) -> tuple[int, bool]:
    """Run one command line and print errors on stderr.

    Returns:
        the exit code, and whether the command came to its end with code of tiered alone.
    """
    subject, is_own = None, False
    note_typed(())
    tokens = translated(with_command(tokens, COMMANDS))
    try:
        subject, command, is_own = _command(complete(tokens))
        with _no_warnings():
            exit_code: int | None = command()
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code or 0, is_own
    except BrokenPipeError:
        raise
    except WrongCommandLine as error:
        named = next((token for token in tokens if token in COMMANDS), None)
        line = f"tiered {named}" if named else "tiered"
        found = usage_failure(error.reason, line, error.answer, COMMANDS)
    except Exception as error:  # noqa: BLE001 - each becomes an exit code and a message
        found = failure(error, subject)
        if found.exit_code == BUG and _is_verbose(tokens):
            found = Failure(BUG, f"{found.text}\n{short_traceback(error)}".rstrip())
    return print_failure(found), False


def _command(tokens: Sequence[str]) -> tuple[str | None, Callable[[], Any], bool]:
    """Return the file of a command, a function that runs it, and whether all its code is ours."""
    plain = plain_command(tokens)
    if plain is not None:
        return plain
    gc.enable()
    from tiered.cli.app import parsed

    return *parsed(tokens), False


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Ignore Python's warnings, which are for programmers, unless -W is given."""
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        yield


def _is_verbose(tokens: Sequence[str]) -> bool:
    return not {"-v", "--verbose"}.isdisjoint(tokens)
