"""Option values as text: how `{max_growth=1%}` is written, and how it is read back."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from tiered.errors import PipelineSyntaxError

DELIMITERS = frozenset(",{}[]():=@'\"\\")
_KEYWORDS = frozenset({"true", "false", "none"})


class Word(str):
    """A bare word of the text; the option that it is for decides whether it is a number."""

    __slots__ = ()


def format_value(value: Any) -> str:
    """Return the text that reads back as this value."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case Enum():
            return format_value(value.value)
        case int() | float():
            return repr(value)
        case str():
            return value if _is_bare(value) else quote(value)
        case Mapping():
            items = sorted((format_value(key), format_value(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
        case Set():
            return "[" + ",".join(sorted(format_value(item) for item in value)) + "]"
        case _:
            return "[" + ",".join(format_value(item) for item in value) + "]"


def quote(text: str) -> str:
    """Return the text in quotes, as `Scanner.quoted` reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _is_bare(text: str) -> bool:
    """Return whether a string can stand without quotes and still be read as that string."""
    if not text or text in _KEYWORDS or DELIMITERS.intersection(text):
        return False
    if any(char.isspace() for char in text):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def parse_value(text: str) -> Any:
    """Read one value: a word, a quoted text, `[a,b]` or `{Conv: NHWC}`.

    Raises:
        PipelineSyntaxError: the text is no value, or goes on after it.
    """
    scanner = Scanner(text)
    value = scanner.value()
    scanner.end()
    return value


class Scanner:
    """Reads the text of pipelines and values from left to right; white space separates nothing."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """Return the next character that is no white space, or "" at the end."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def take(self, char: str) -> bool:
        """Go past the character if it is next."""
        if self.peek() != char:
            return False
        self.at += 1
        return True

    def expect(self, char: str) -> None:
        """Go past the character.

        Raises:
            PipelineSyntaxError: something else is next.
        """
        if not self.take(char):
            raise self.error(repr(char))

    def end(self) -> None:
        """Check that nothing is left.

        Raises:
            PipelineSyntaxError: something is.
        """
        if self.peek():
            raise self.error("the end")

    def word(self, what: str) -> Word:
        """Read a bare word.

        Raises:
            PipelineSyntaxError: there is none.
        """
        self.peek()
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in DELIMITERS or char.isspace():
                break
            self.at += 1
        if self.at == start:
            raise self.error(what)
        return Word(self.text[start : self.at])

    def quoted(self) -> str:
        """Read a text in single or double quotes; a backslash keeps the next character.

        Raises:
            PipelineSyntaxError: the closing quote is missing.
        """
        closing = self.peek()
        start, self.at = self.at, self.at + 1
        read: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != closing:
            self.at += self.text[self.at] == "\\" and self.at + 1 < len(self.text)
            read.append(self.text[self.at])
            self.at += 1
        if self.at >= len(self.text):
            self.at = start
            raise self.error(f"a text that ends with {closing}")
        self.at += 1
        return "".join(read)

    def text_or_word(self, what: str) -> str:
        """Read a quoted text or a bare word."""
        return self.quoted() if self.peek() in ("'", '"') else self.word(what)

    def value(self) -> Any:
        """Read a value: words stay `Word`s, quoted texts are `str`."""
        if self.take("["):
            return self._items("]", self.value)
        if self.take("{"):
            return dict(self._items("}", self._pair))
        return self.text_or_word("a value")

    def _pair(self) -> tuple[Any, Any]:
        key = self.text_or_word("a key")
        self.expect(":")
        return key, self.value()

    def _items(self, closing: str, read: Any) -> list[Any]:
        items: list[Any] = []
        while not self.take(closing):
            if items:
                self.expect(",")
            items.append(read())
        return items

    def error(self, expected: str) -> PipelineSyntaxError:
        """Return the error that points at the present place."""
        shown = self.text.replace("\n", " ")
        return PipelineSyntaxError(
            f"expected {expected} at column {self.at + 1}\n  {shown}\n  {' ' * self.at}^"
        )
