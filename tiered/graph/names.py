"""Names that are taken, and fresh ones that depend on nothing but which are taken."""

from __future__ import annotations


class Names:
    """A multiset of names; sibling bodies may each own the same one."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        # For each base: every suffix below this number is taken.
        self._next: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def is_unique(self, name: str) -> bool:
        """Tell whether exactly one thing bears the name."""
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
        if suffix.isdecimal() and int(suffix) < self._next.get(base, 0):
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
