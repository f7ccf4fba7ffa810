"""Classes that leave methods to their subclasses."""

from __future__ import annotations


class Abstract:
    """The base of classes that say which method a subclass lacks."""

    def _lacks(self, method: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {method}")
