"""Options with an optional value: `--verify` alone, `--verify=final` and `--verify final`.

A word after such an option is its value if it can be one. A word that can be neither a value nor
the name of a file is an error: it must not become a file of that name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, get_args

from tiered.cli.watch import ALL, KINDS
from tiered.support.errors import OptionError, PassNotFoundError, UsageError

_OF_PASSES: Final = ("--print-before", "--print-after", "--diff")

OPTIONAL: Final = {
    **dict.fromkeys(("--remarks", *_OF_PASSES), ALL),
    "--external-data": "1KiB",
    "--verify": "each",
    "--certify": "on",
}
"""The options, and the value that each has without one."""

_EXPECTED: Final = {
    **dict.fromkeys(_OF_PASSES, "a pass"),
    "--remarks": "a kind of remark",
    "--external-data": "a size",
    "--verify": "a method",
    "--certify": "strict",
}


def complete(tokens: Sequence[str]) -> list[str]:
    """Return the command line with a value in the same word as each of these options.

    Raises:
        UsageError: a word after one is neither a value of it nor looks like a file.
    """
    completed: list[str] = []
    pending = list(tokens)
    while pending:
        token = pending.pop(0)
        if token not in OPTIONAL:
            completed.append(token)
            continue
        follows = pending[0] if pending else ""
        is_value = follows[:1] not in ("", "-") and _is_value(token, follows)
        completed.append(f"{token}={pending.pop(0) if is_value else OPTIONAL[token]}")
        if not is_value and follows[:1] not in ("", "-") and not _is_file(follows):
            raise UsageError(
                f"{token} {follows}: {follows!r} is neither {_EXPECTED[token]} nor a file; type "
                f"{token}={follows} for a value, ./{follows} for a file"
            )
    return completed


def _is_value(option: str, word: str) -> bool:
    if option == "--verify":
        from tiered.verify.methods import How

        return word in get_args(How)
    if option == "--external-data":
        return _is_size(word)
    if option == "--certify":
        return word.startswith("strict") or word.endswith(".json")
    entries = word.split(",")
    if option == "--remarks":
        return all(entry in (*KINDS, ALL) for entry in entries)
    return all(entry == ALL or "*" in entry or _is_pass(entry) for entry in entries)


def _is_size(word: str) -> bool:
    from tiered.support.options import size_in_bytes

    try:
        size_in_bytes(word, 0)
    except OptionError:
        return False
    return True


def _is_pass(name: str) -> bool:
    from tiered.passes.interface.registry import registry

    try:
        registry.resolve(name)
    except PassNotFoundError:
        return False
    return True


def _is_file(word: str) -> bool:
    """Return whether a word is written as a file is, or names one that exists."""
    return os.sep in word or "." in word or os.path.exists(word)
