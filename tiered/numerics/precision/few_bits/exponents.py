"""Exponents of scales that are powers of two, by the node that reads what is quantised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from tiered.graph import Model, Node
from tiered.numerics.precision.narrowing import unmatched
from tiered.support.errors import UsageError

_LEAST: Final = -126
_LARGEST: Final = 127


class Exponents(NamedTuple):
    """The exponents of scales; None where the numbers decide.

    Attributes:
        other: that of nodes that no glob fits.
        by_node: globs of the names of nodes, and their exponents; the first that fits counts.
    """

    other: int | None = None
    by_node: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, other: int | None, entries: Iterable[str]) -> Exponents:
        """Return exponents from text as `encoder/*=-3`.

        Raises:
            UsageError: an entry has no name or no integer, or the scale is no normal float.
        """
        found = cls(other, tuple(map(_entry, entries)))
        for number in (other, *(number for _, number in found.by_node)):
            if number is not None and not _LEAST <= number <= _LARGEST:
                raise UsageError(f"exponent {number}: expected {_LEAST} to {_LARGEST}")
        return found

    def for_node(self, node: Node) -> int | None:
        """Return the exponent for what a node reads."""
        fitting = (number for name, number in self.by_node if fnmatchcase(node.label, name))
        return next(fitting, self.other)

    def findings(self, model: Model) -> Iterator[str]:
        """Return the names that no node of a model has, in words."""
        return unmatched(model, (), [name for name, _ in self.by_node])


MEASURED: Final = Exponents()
"""No scale is a given power of two."""


def _entry(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    try:
        exponent = int(number)
    except ValueError:
        exponent = None
    if not name or exponent is None:
        raise UsageError(f"exponent {text!r}: expected NODE=INTEGER, as 'encoder/*=-3'")
    return name, exponent
