"""Typed options of passes and config keys, checked when they are set.

The options of a pass are the keyword-only parameters of its function: name, annotation, default,
and the line of the docstring's `Args:` that describes them.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, NewType

from tiered.support.errors import OptionError, UsageError, did_you_mean
from tiered.support.loading import is_plain
from tiered.support.option_text import Word, format_value

Size = NewType("Size", str)
"""A number of bytes, or a share of what is there: "64", "16KB", "1MB", "2%"."""

_SIZE = r"(?i)(\d+(?:\.\d+)?)\s*(B|KB|KiB|MB|MiB|GB|GiB|%)?"
_UNITS = {"b": 1, "kb": 1000, "kib": 1 << 10, "mb": 1000**2, "mib": 1 << 20}
_UNITS |= {"gb": 1000**3, "gib": 1 << 30}
_WORDS = {"true": True, "false": False, "none": None}


def size_in_bytes(size: str, whole: int) -> int:
    """Return the number of bytes of a size, rounded down; a percentage is of `whole`.

    Raises:
        OptionError: the text is no size.
    """
    match = re.fullmatch(_SIZE, size.strip())
    if match is None:
        raise OptionError(f"{size!r} is not {describe(Size)}")
    number, unit = float(match[1]), (match[2] or "B").lower()
    return int(number * whole / 100) if unit == "%" else int(number * _UNITS[unit])


class Option(NamedTuple):
    """One option: its name, what it takes (an annotation), its default and its line of help."""

    name: str
    type: Any
    default: Any
    doc: str = ""

    def __hash__(self) -> int:
        """Hash the text: a default may be a list or a mapping, which have no hash."""
        return hash((self.name, self.doc))

    @property
    def takes(self) -> str:
        """A description of the values that it takes."""
        return describe(self.type)

    def checked(self, value: Any, owner: str) -> Any:
        """Return the value as the option's type.

        Raises:
            OptionError: it is of another type.
        """
        try:
            return convert(value, self.type)
        except ValueError:
            raise OptionError(
                f"{owner}: option {self.name!r} takes {self.takes}, not {value!r}"
            ) from None


def checked_options(
    options: Iterable[Option], given: Mapping[str, Any], owner: str
) -> dict[str, Any]:
    """Return every option's value: those given, checked, and the defaults of the others.

    Raises:
        OptionError: an unknown name, or a value of the wrong type.
    """
    by_name = {option.name: option for option in options}
    for name in given:
        if name not in by_name:
            known = f"it takes {', '.join(by_name)}" if by_name else "it takes none"
            raise OptionError(
                f"{owner} has no option {name!r}{did_you_mean(name, by_name)} ({known})"
            )
    return {
        name: option.checked(given[name], owner) if name in given else option.default
        for name, option in by_name.items()
    }


def options_of(function: Callable[..., Any], owner: str) -> tuple[Option, ...]:
    """Return the options which a function's keyword-only parameters declare, or all of a class.

    Raises:
        UsageError: one has no default, or a default that is not of its type.
    """
    if is_plain(function) and not function.__code__.co_kwonlyargcount:
        return ()
    described = documented(function)
    is_class = isinstance(function, type)
    found = []
    for parameter in inspect.signature(function).parameters.values():
        is_named = is_class and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if not is_named and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        if parameter.default is inspect.Parameter.empty:
            raise UsageError(f"{owner}: option {parameter.name!r} needs a default")
        kind = _annotation(function, parameter)
        option = Option(parameter.name, kind, parameter.default, described.get(parameter.name, ""))
        found.append(option)
        option.checked(parameter.default, owner)
    return tuple(found)


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type of an option; without an annotation, the type of its default."""
    kind = parameter.annotation
    if kind is inspect.Parameter.empty:
        return Any if parameter.default is None else type(parameter.default)
    if isinstance(kind, str):
        # Only the option's own annotation: the others may name what is imported for typing only.
        return eval(kind, _globals(function))
    return kind


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    if isinstance(function, type):
        return vars(sys.modules[function.__module__])
    found: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    return found


def documented(function: Callable[..., Any]) -> dict[str, str]:
    """Return the text on each parameter in the `Args:` of the docstring."""
    _, _, section = (inspect.getdoc(function) or "").partition("Args:\n")
    body = section.split("\n\n", 1)[0]
    found = re.findall(r"^ +(\w+): ((?:.|\n(?! +\w+: ))*)", body, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


# --- types ----------------------------------------------------------------------------------------


def describe(kind: Any) -> str:
    """Describe the values of a type."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return "anything"
    if _is_union(origin):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is Literal:
        return _one_of(arguments)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of([member.value for member in kind])
    if _is_mapping(origin or kind):
        key, item = arguments or (Any, Any)
        return f"a mapping from {describe(key)} to {describe(item)}"
    if _is_sequence(origin or kind):
        return f"a list of {describe(arguments[0])}" if arguments else "a list"
    named = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    named |= {types.NoneType: "none", Size: "a size such as 64, 1MB or 2%"}
    return named.get(kind, getattr(kind, "__name__", str(kind)))


def convert(value: Any, kind: Any) -> Any:
    """Return a value as the type of an annotation; bare words of text are read as that type.

    Raises:
        ValueError: it is not of the type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _guess(value)
    if _is_union(origin):
        return _first_of(value, arguments)
    if origin is Literal:
        return _member(value, {argument: argument for argument in arguments})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum_member(value, kind)
    if _is_mapping(origin or kind):
        return _mapping(value, arguments or (Any, Any))
    if _is_sequence(origin or kind):
        return (origin or kind)(_items(value, arguments[0] if arguments else Any))
    return _scalar(value, kind)


def _is_union(origin: Any) -> bool:
    return origin is typing.Union or origin is types.UnionType


def _is_sequence(kind: Any) -> bool:
    return kind in (list, tuple, set, frozenset)


def _is_mapping(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Mapping)


def _one_of(values: Iterable[Any]) -> str:
    return "one of " + ", ".join(format_value(value) for value in values)


def _scalar(value: Any, kind: Any) -> Any:
    if kind is Size:
        return _size(value)
    if isinstance(value, Word):
        return _read(value, kind)
    # True is an int in Python, and an integer is a valid float.
    if isinstance(value, bool) and kind is not bool:
        raise ValueError(value)
    if kind is float and isinstance(value, int):
        return float(value)
    if isinstance(value, kind):
        return value
    raise ValueError(value)


def _read(word: Word, kind: Any) -> Any:
    if kind in (bool, types.NoneType):
        value = _WORDS.get(word, word)
        if isinstance(value, kind):
            return value
        raise ValueError(word)
    return kind(str(word))


def _size(value: Any) -> str:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not re.fullmatch(_SIZE, text):
        raise ValueError(value)
    return text


def _guess(value: Any) -> Any:
    """Return an untyped value: words as Python would read them, containers item by item."""
    match value:
        case Word():
            return _guess_word(value)
        case Mapping():
            return {str(key): _guess(item) for key, item in value.items()}
        case list():
            return [_guess(item) for item in value]
        case _:
            return value


def _guess_word(word: Word) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return str(word)


def _first_of(value: Any, kinds: Sequence[Any]) -> Any:
    # `none` is a word of its own; only then the types in the order of the annotation.
    for kind in sorted(kinds, key=lambda kind: kind is not types.NoneType):
        try:
            return convert(value, kind)
        except ValueError:
            continue
    raise ValueError(value)


def _member(value: Any, members: Mapping[Any, Any]) -> Any:
    for known, member in members.items():
        if value == known and isinstance(value, type(known)):
            return member
        if isinstance(value, Word) and value == format_value(known):
            return member
    raise ValueError(value)


def _enum_member(value: Any, kind: type[Enum]) -> Enum:
    if isinstance(value, kind):
        return value
    members: dict[Any, Enum] = {member.value: member for member in kind}
    found: Enum = _member(value, members | dict(kind.__members__))
    return found


def _items(value: Any, kind: Any) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise ValueError(value)
    return [convert(item, kind) for item in value]


def _mapping(value: Any, kinds: tuple[Any, ...]) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(value)
    return {convert(key, kinds[0]): convert(item, kinds[1]) for key, item in value.items()}
