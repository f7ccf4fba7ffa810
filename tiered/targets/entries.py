"""Entries of a profile: a table whose keys are taken one by one, and the readers of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from tiered.graph.core.dtypes import DataType
from tiered.support.errors import BackendError, did_you_mean
from tiered.targets.operator_rule import Bounds

_DTYPES: Final = {dtype.name.lower(): int(dtype) for dtype in DataType}
_OTHER_NAMES: Final = {"float32": "float", "fp32": "float", "float64": "double", "fp16": "float16"}
_OTHER_NAMES.update({"bf16": "bfloat16", "half": "float16", "int": "int32", "fp64": "double"})

Groups = Mapping[str, frozenset[int]]


class TomlTable:
    """A table with keys that are taken one by one; a key that remains is an error."""

    def __init__(self, entries: Mapping[str, Any], where: str) -> None:
        self._entries = entries
        self.where = where
        self._known: list[str] = []

    def take(self, key: str, read: Callable[[Any], Any], default: Any) -> Any:
        """Return the value of a key, converted by `read`, or the default."""
        self._known.append(key)
        if key not in self._entries:
            return default
        return checked(read, self._entries[key], f"{self.where}: {key}")

    def table(self, key: str) -> TomlTable:
        """Return the table below a key; an empty one if there is none."""
        return TomlTable(self.take(key, mapping, {}), f"{self.where}: {key}")

    def end(self) -> None:
        """Check that all keys were taken.

        Raises:
            BackendError: a key is unknown.
        """
        for key in self._entries:
            if key not in self._known:
                close = did_you_mean(key, self._known)
                known = ", ".join(sorted(self._known))
                raise BackendError(f"{self.where}: unknown key {key!r}{close} (there are {known})")


class _NoDtype(ValueError):
    """An unknown name of a dtype; the message is complete."""


def checked(read: Callable[[Any], Any], value: Any, where: str) -> Any:
    """Return what a reader makes of a value.

    Raises:
        BackendError: the value is not what the reader expects; `where` is named.
    """
    try:
        return read(value)
    except _NoDtype as error:
        raise BackendError(f"{where}: {error}") from None
    except ValueError as error:
        raise BackendError(f"{where}: {error}, not {value!r}") from None


def _of(kind: type, expected: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"expected {expected}")
        return value

    return read


string = _of(str, "a string")
integer = _of(int, "an integer")
boolean = _of(bool, "true or false")
mapping = _of(dict, "a table")
sequence = _of(list, "a list")


def number(value: Any) -> float:
    """Read an integer or a number with a fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return float(value)


def strings(value: Any) -> tuple[str, ...]:
    """Read a string, or a list of them."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError("expected a string or a list of strings")
    return tuple(items)


def bounds(value: Any) -> Bounds:
    """Read [low, high], {min, max}, or one integer; a missing upper end is open."""
    return _limits(value, int)


def bounds_from(least: int) -> Callable[[Any], Bounds]:
    """Return a reader for the same of numbers from `least`, as versions and ranks are."""

    def read(value: Any) -> Bounds:
        if isinstance(value, list) and len(value) == 1:
            raise ValueError("expected [low, high] or {min = low, max = high}")
        found = bounds(value)
        ends = [end for end in (found.low, found.high) if end is not None]
        if ends and min(ends) < least:
            raise ValueError(f"expected numbers from {least}")
        return found

    return read


def count(value: Any) -> int:
    """Read an integer from 0."""
    if integer(value) < 0:
        raise ValueError("expected an integer from 0")
    return int(value)


def bounds_of_elements(value: Any) -> Bounds:
    """Read the same of numbers with fractions too."""
    return _limits(value, (int, float))


def _limits(value: Any, kinds: type | tuple[type, ...]) -> Bounds:
    if isinstance(value, dict) and set(value) <= {"min", "max"}:
        ends: Sequence[Any] = (value.get("min"), value.get("max"))
    elif isinstance(value, list) and len(value) in (1, 2):
        ends = (*value, None)[:2]
    else:
        ends = (value, value)
    low, high = ends
    for end in (low, high):
        if end is not None and (not isinstance(end, kinds) or isinstance(end, bool)):
            raise ValueError("expected [low, high] or {min = low, max = high}")
    if None not in (low, high) and low > high:
        raise ValueError("expected the lower end first")
    return Bounds(low, high)


def one_of(literal: Any) -> Callable[[Any], Any]:
    """Return a reader for the names of a Literal."""
    names = get_args(literal)

    def read(value: Any) -> Any:
        if value not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return value

    return read


def dtype(name: Any) -> int:
    """Read the name of a dtype."""
    if isinstance(name, str) and name in _DTYPES:
        return _DTYPES[name]
    if isinstance(name, str) and name in _OTHER_NAMES:
        raise _NoDtype(f"ONNX calls {name} {_OTHER_NAMES[name]!r}")
    close = did_you_mean(str(name), _DTYPES)
    raise _NoDtype(f"no dtype {name!r}{close} (there are {', '.join(_DTYPES)})")


def dtypes_in(groups: Groups) -> Callable[[Any], frozenset[int]]:
    """Return a reader for lists of dtypes and of groups of dtypes."""

    def read(value: Any) -> frozenset[int]:
        names = strings(value)
        single = {dtype(name) for name in names if name not in groups}
        return frozenset(single.union(*(groups[name] for name in names if name in groups)))

    return read


def pairs_of_dtypes(value: Any) -> dict[int, int]:
    """Read a table of dtypes by dtypes."""
    return {dtype(wide): dtype(to) for wide, to in mapping(value).items()}
