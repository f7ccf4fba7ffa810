"""A stack for each model: passes nest, and one instrument may watch many models at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from tiered.graph import Model

T = TypeVar("T")


class Stacks(Generic[T]):
    """A stack for each model. A model belongs to one thread, so a stack does too."""

    def __init__(self) -> None:
        self._open: dict[int, list[T]] = {}

    def push(self, model: Model, item: T) -> None:
        """Push an item."""
        self._open.setdefault(id(model), []).append(item)

    def pop(self, model: Model) -> T:
        """Remove and return the last item."""
        stack = self._open[id(model)]
        item = stack.pop()
        if not stack:
            del self._open[id(model)]
        return item

    def top(self, model: Model) -> T | None:
        """Return the last item, None if there is none."""
        stack = self._open.get(id(model))
        return stack[-1] if stack else None
