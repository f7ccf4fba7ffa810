"""Conditions on the type of a value, or by a predicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph.core.value import Value


class Condition(Record):
    """Conditions on a value: all that are not None must hold; an unknown type meets none."""

    dtypes: tuple[int, ...] | None = None
    ranks: tuple[int, ...] | None = None
    shape: tuple[Any, ...] | None = None
    predicate: Callable[[Any], bool] | None = None

    @classmethod
    def of(cls, *, dtype: Any, rank: Any, shape: Any) -> Condition:
        """Return the condition on a type, of one dtype or rank or of several."""
        return cls(_several(dtype), _several(rank), None if shape is None else tuple(shape))

    def holds(self, value: Value) -> bool:
        """Return whether the type of a value meets the conditions."""
        if self.dtypes is not None and value.dtype not in self.dtypes:
            return False
        if self.ranks is not None and value.rank not in self.ranks:
            return False
        if self.shape is not None:
            return value.shape is not None and _fits(self.shape, value.shape)
        return True

    def __str__(self) -> str:
        if self.predicate is not None:
            return f".where({getattr(self.predicate, '__name__', 'predicate')})"
        parts = []
        for name, several in (("dtype", self.dtypes), ("rank", self.ranks)):
            if several is not None:
                parts.append(f"{name}={several[0] if len(several) == 1 else several}")
        if self.shape is not None:
            dims = ["..." if dim is ... else repr(dim) for dim in self.shape]
            parts.append(f"shape=({', '.join(dims)}{',' if len(dims) == 1 else ''})")
        return f".having({', '.join(parts)})"


def _several(one: Any) -> tuple[int, ...] | None:
    if one is None:
        return None
    return tuple(one) if isinstance(one, tuple | list | set | frozenset | range) else (one,)


def _fits(wanted: Sequence[Any], dims: Sequence[Any]) -> bool:
    if ... in wanted:
        at = wanted.index(...)
        after = len(wanted) - at - 1
        if len(dims) < at + after:
            return False
        return _fits(wanted[:at], dims[:at]) and _fits(wanted[at + 1 :], dims[len(dims) - after :])
    return len(wanted) == len(dims) and all(
        want is None or want == dim for want, dim in zip(wanted, dims, strict=True)
    )
