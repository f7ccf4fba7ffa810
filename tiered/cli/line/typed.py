"""The command line that runs, for pages that say how they were made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


@contextmanager
def typing(tokens: Sequence[str]) -> Iterator[None]:
    """Run a block as the command line of some tokens, without the name of the program."""
    before = _TYPED.set(tuple(tokens))
    try:
        yield
    finally:
        _TYPED.reset(before)


def typed_line(without: str) -> str:
    """Return the command line as a shell takes it; empty outside of one.

    Args:
        without: an option that is left out, with its value: that of the page itself.
    """
    tokens, kept = iter(_TYPED.get()), list[str]()
    for token in tokens:
        if token == without:
            next(tokens, None)
        elif not token.startswith(f"{without}="):
            kept.append(token)
    return shlex.join(["tiered", *kept]) if kept else ""
