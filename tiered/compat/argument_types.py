"""Arguments are held against the annotations of a class: other types are errors that name them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection
from functools import cached_property, wraps
from numbers import Integral, Real
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from tiered.support.errors import UsageError

AnyClass = TypeVar("AnyClass", bound=type)

_NUMBERS: Final[dict[object, type]] = {int: Integral, float: Real}
"""Numbers of numpy are numbers too."""


def checks_arguments(cls: AnyClass) -> AnyClass:
    """Let the public methods and setters of a class raise UsageError for other types."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if inspect.isfunction(member):
            setattr(cls, name, _checked(member))
        elif isinstance(member, property) and member.fset is not None:
            setattr(cls, name, member.setter(_checked(member.fset)))
    return cls


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that checks its arguments first."""
    declared = _Declared(function)

    @wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        declared.check(args, kwargs)
        return function(*args, **kwargs)

    return checking


class _Declared:
    """The annotated parameters of a method."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @cached_property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.function)

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Hold arguments against the annotations.

        An annotated class may say where its objects are: `found_in`.

        Raises:
            UsageError: an argument is of another type.
            TypeError: there are more arguments than parameters, or less.
        """
        try:
            given = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self._where(args)}: {error}") from None
        for name, value in given.items():
            parameter = self.signature.parameters[name]
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if name in self.hints and not fits(value, self.hints[name]):
                hint = self.hints[name]
                places = [getattr(each, "found_in", "") for each in (hint, *get_args(hint))]
                found_in = next((f": {place}" for place in places if place), "")
                expected = f"{parameter.annotation}{found_in}"
                raise UsageError(f"{self._where(args)}: {name} is {value!r}; expected {expected}")

    def _where(self, args: tuple[Any, ...]) -> str:
        """Return the method by the class of the object, which may inherit it."""
        owner, _, name = self.function.__qualname__.rpartition(".")
        owner = type(args[0]).__name__ if args else owner
        return owner if name == "__init__" else f"{owner}.{name}"


def fits(value: object, hint: Any) -> bool:
    """Return whether a value is of an annotated type; numpy makes arrays of numbers and lists."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if np.ndarray in (hint, origin):
        return isinstance(value, Real | list | tuple | np.generic) or hasattr(value, "__array__")
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if hint is None or hint is type(None):
        return value is None
    if not isinstance(value, origin or _NUMBERS.get(hint, hint)):
        return False
    if len(inner) != 1 or not isinstance(value, Collection):
        return True
    # A string is no list of its letters.
    return not isinstance(value, str) and all(fits(each, inner[0]) for each in value)
