"""Sizes that options take: 64, 1MB, 2%."""

from __future__ import annotations

from tiered.support.errors import OptionError, UsageError
from tiered.support.options import size_in_bytes


def size_option(option: str, given: str, whole: int = 0) -> int:
    """Return the bytes of an option.

    Args:
        option: its name, for errors.
        given: what was typed.
        whole: the bytes that a percentage is of.

    Raises:
        UsageError: it is no size.
    """
    try:
        return size_in_bytes(given, whole)
    except OptionError as error:
        raise UsageError(f"{option}: {error}") from error
