"""The sizes at which a region is tried, where its dims have none."""

from __future__ import annotations

from typing import Final

_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
_OTHERS: Final = (3, 2, 7, 5, 13, 11, 19, 17, 29, 23)


class TrialSizes(dict[str, int]):
    """A size for each name of a dim, chosen when it is first asked for.

    Args:
        values: the sizes, in the order in which names are asked for.
        rank: of tensors that have no known rank.
        for_ranks: whether they are only tried where the rank of a tensor is not known.

    Attributes:
        changed: the names that got another size, as the first one does not fit.
    """

    def __init__(self, values: tuple[int, ...], rank: int, *, for_ranks: bool = False) -> None:
        super().__init__()
        self.values_ = values
        self.rank = rank
        self.for_ranks = for_ranks
        self.changed: frozenset[str] = frozenset()
        self._others: dict[tuple[str, int], TrialSizes] = {}

    def __missing__(self, name: str) -> int:
        size = self.values_[len(self) % len(self.values_)]
        self[name] = size
        return size

    def having(self, name: str, size: int) -> TrialSizes:
        """Return the same sizes but for one: the same object each time."""
        made = self._others.get((name, size))
        if made is None:
            made = TrialSizes(self.values_, self.rank, for_ranks=self.for_ranks)
            made.update(self)
            made[name] = size
            made.changed = self.changed | {name}
            self._others[name, size] = made
        return made


def assignments() -> tuple[TrialSizes, ...]:
    """Return sizes for dims: unequal primes, other ones, all 1, all 0; and some 1 for ranks."""
    mixed = TrialSizes((2, 1, 1, 1), 4, for_ranks=True)
    return (
        TrialSizes(_PRIMES, 3),
        TrialSizes(_OTHERS, 2),
        TrialSizes((1,), 4),
        TrialSizes((0,), 1),
        mixed,
    )
