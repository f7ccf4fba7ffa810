"""The taken names of a model, and fresh names, which depend only on the taken ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TakenNames:
    """A multiset of names; sibling bodies may each use the same one."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        # For each base: every suffix below this number is taken.
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Release the names that the block took if it raises; the exception propagates."""
        taken = dict(self._taken)
        try:
            yield
        except BaseException:
            self._taken = taken
            raise

    def is_unique(self, name: str) -> bool:
        """Return whether the name is taken exactly once."""
        return self._taken.get(name) == 1

    def take(self, name: str) -> None:
        """Note one more bearer of the name."""
        self._taken[name] = self._taken.get(name, 0) + 1

    def release(self, name: str) -> None:
        """Note one bearer less; a free name can be given again, so that undo changes no name."""
        count = self._taken[name] - 1
        if count:
            self._taken[name] = count
            return
        del self._taken[name]
        base, _, suffix = name.rpartition("_")
        first = self._next.get(base)
        if first is not None and suffix.isdecimal() and int(suffix) < first:
            self._next[base] = int(suffix)

    def fresh(self, base: str) -> str:
        """Return `base`, or the first free of `base_1`, `base_2`, ...; it is not yet taken."""
        if base not in self._taken:
            return base
        number = self._next.get(base, 1)
        while f"{base}_{number}" in self._taken:
            number += 1
        self._next[base] = number
        return f"{base}_{number}"
