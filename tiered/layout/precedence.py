"""An order of all axes which as many orders of some of them as possible agree with."""

from __future__ import annotations

from itertools import pairwise

Names = tuple[int, ...]
"""Axes by the numbers that they go under in the whole region."""


class Precedence:
    """Which axes stand before which, as far as orders of wires say it that do not contradict."""

    def __init__(self) -> None:
        self._after: dict[int, dict[int, None]] = {}

    def add(self, names: Names) -> None:
        """Take in an order, unless it contradicts what is there."""
        for name in names:
            self._after.setdefault(name, {})
        new = [(one, other) for one, other in pairwise(names) if other not in self._after[one]]
        if not new or self._contradicts(names):
            return
        for one, other in new:
            self._after[one][other] = None

    def _contradicts(self, names: Names) -> bool:
        """Tell whether an axis stands before one that it would have to follow."""
        before: set[int] = set()
        for name in names:
            if before and not before.isdisjoint(self._reached(name)):
                return True
            before.add(name)
        return False

    def _reached(self, name: int) -> set[int]:
        seen, pending = {name}, [name]
        while pending:
            for other in self._after[pending.pop()]:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        return seen

    def sorted(self) -> list[int]:
        """Return all axes in an order that contradicts nothing."""
        done: dict[int, None] = {}
        for name in self._after:
            self._visit(name, done)
        return list(reversed(done))

    def _visit(self, start: int, done: dict[int, None]) -> None:
        stack = [(start, iter(self._after[start]))]
        while stack:
            name, others = stack[-1]
            following = next((other for other in others if other not in done), None)
            if following is None:
                stack.pop()
                done[name] = None
            else:
                stack.append((following, iter(self._after[following])))
