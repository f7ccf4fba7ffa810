"""Analyses: what is computed of a model, kept as long as the edits since leave it true."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tiered.graph.core.edit import Edit, Entry, Stamp

T = TypeVar("T")


class Analysis(ABC, Generic[T]):
    """A function of a model that says which edits its results survive.

    A plain function will do for `model.analysis` too; its results survive no edit.
    """

    @property
    def survives(self) -> frozenset[Edit]:
        """The kinds of edits that leave a result as it is."""
        return frozenset()

    @abstractmethod
    def __call__(self, model: Any) -> T:
        """Compute the result of a model."""

    def renewed(self, model: Any, result: T, edits: Sequence[Entry]) -> T | None:
        """Return the result after edits, given the one before them; None to compute it again.

        Args:
            model: the model after the edits.
            result: what held before them; it stays as it is, others may hold it.
            edits: the entries of the journal that the result does not survive, oldest first.
        """
        return None


class _OfFunction(Analysis[T]):
    def __init__(self, compute: Callable[[Any], T], survives: frozenset[Edit]) -> None:
        self._compute = compute
        self._survives = survives

    @property
    def survives(self) -> frozenset[Edit]:
        return self._survives

    def __call__(self, model: Any) -> T:
        return self._compute(model)


def analysis(survives: frozenset[Edit]) -> Callable[[Callable[[Any], T]], Analysis[T]]:
    """Make an analysis of a function of a model.

    Args:
        survives: the kinds of edits that leave a result as it is.
    """

    def decorate(compute: Callable[[Any], T]) -> Analysis[T]:
        return _OfFunction(compute, survives)

    return decorate


class Analyses:
    """The results of the analyses of a model, each with the moment at which it held."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Callable[[Any], Any], tuple[Stamp, Any]] = {}

    def of(self, model: Any, compute: Callable[[Any], T]) -> T:
        """Return the result of an analysis for the model as it is now."""
        journal = model.journal
        known = self._known.get(compute)
        if known is not None and not journal.moved_since(known[0]):
            return known[1]  # type: ignore[no-any-return]  # it is what compute returned
        result: T | None = None
        if known is not None and isinstance(compute, Analysis):
            result = _renewed(model, compute, *known)
        if result is None:
            result = compute(model)
        self._known[compute] = (journal.stamp(), result)
        return result

    def clear(self) -> None:
        """Drop all results."""
        self._known.clear()


def _renewed(model: Any, analysis: Analysis[T], stamp: Stamp, result: T) -> T | None:
    """Return what a result has become by the edits since; None if that is not known."""
    journal = model.journal
    if journal.kept_since(stamp) < stamp.length:
        return None
    survives = analysis.survives
    edits = [entry for entry in journal.since(stamp.length) if entry[0] not in survives]
    return analysis.renewed(model, result, edits) if edits else result
