"""Record: a small immutable value with named fields, which is quick to declare."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """The base of small immutable values, written as a frozen dataclass is.

        class Stock(Record):
            item: str
            count: int = 0

    Records are equal if their classes and fields are. `NamedTuple` and `dataclass` compile code for
    each class: eight and twenty times the time, which modules that every run loads cannot spare.
    To make a record takes longer: what a run makes by the hundred is a NamedTuple.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        own = inspect.get_annotations(cls)
        given = {name: value for name, value in vars(cls).items() if name in own}
        bases = [base for base in reversed(cls.__bases__) if issubclass(base, Record)]
        inherited = [name for base in bases for name in base._fields]
        cls._fields = tuple(dict.fromkeys((*inherited, *own)))
        cls._defaults = {}
        for base in bases:
            cls._defaults = {**cls._defaults, **base._defaults}
        cls._defaults = {**cls._defaults, **given}

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        made = vars(self)
        made.update(self._defaults)
        made.update(zip(fields, values, strict=False))
        made.update(named)
        is_twice = named and not named.keys().isdisjoint(fields[: len(values)])
        if made.keys() != {*fields} or len(values) > len(fields) or is_twice:
            raise TypeError(f"{type(self).__name__} takes {fields}, not {values} and {named}")

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """Return the names of the fields."""
        return cls._fields

    def changed(self, **named: Any) -> Self:
        """Return the record with other values of some fields."""
        return type(self)(**{**vars(self), **named})

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._fields])

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} of a {type(self).__name__} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name!r} of a {type(self).__name__} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        fields = zip(self._fields, self._values(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={each!r}' for name, each in fields)})"
