"""Option values as text: writing and reading `{max_growth=1%}`."""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import Any

from tiered.support.errors import PipelineSyntaxError

DELIMITERS = frozenset(",{}[]():=@'\"\\")
IN_LISTS = "=:"
"""The delimiters that a word in a list may hold: `[N=2,a::b=4/rows]`."""
QUOTES = ("'", '"')
_KEYWORDS = frozenset({"true", "false", "none"})


class Word(str):
    """A bare word of the text; its option decides whether it is a number."""

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
    """Return whether a string reads back as itself without quotes."""
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
    """Read one value: a word, a quoted string, `[a,b]` or `{Conv: NHWC}`.

    Raises:
        PipelineSyntaxError: the text is no value, or has more after it.
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
        """Read the character if it is next; return whether it was."""
        if self.peek() != char:
            return False
        self.at += 1
        return True

    def expect(self, char: str) -> None:
        """Read the character.

        Raises:
            PipelineSyntaxError: something else is next.
        """
        if not self.take(char):
            raise self.error(repr(char))

    def end(self) -> None:
        """Check that the end is reached.

        Raises:
            PipelineSyntaxError: something is.
        """
        if self.peek():
            raise self.error("the end")

    def word(self, what: str, also: str = "") -> Word:
        """Read a bare word.

        Args:
            what: for the error.
            also: delimiters that the word may hold.

        Raises:
            PipelineSyntaxError: there is none.
        """
        self.peek()
        start = self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            if (char in DELIMITERS and char not in also) or char.isspace():
                break
            self.at += 1
        if self.at == start:
            raise self.error(what)
        return Word(self.text[start : self.at])

    def quoted(self) -> str:
        """Read a string in single or double quotes; a backslash keeps the next character.

        Raises:
            PipelineSyntaxError: the closing quote is missing.
        """
        closing = self.peek()
        start, self.at = self.at, self.at + 1
        read: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != closing:
            self.at += self.text[self.at] == "\\"
            read.append(self.text[self.at : self.at + 1])
            self.at += 1
        if self.at >= len(self.text):
            self.at = start
            raise self.error(f"a string that ends with {closing}")
        self.at += 1
        return "".join(read)

    def text_or_word(self, what: str, also: str = "") -> str:
        """Read a quoted string or a bare word; `also` as for `word`."""
        return self.quoted() if self.peek() in QUOTES else self.word(what, also)

    def entries(self) -> list[str]:
        """Read a list to the end, each entry as it is written: no comma in brackets ends one.

        Raises:
            PipelineSyntaxError: the closing quote of a string is missing.
        """
        found, start, depth = list[str](), self.at, 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in QUOTES:
                self.quoted()
                continue
            depth += (char in "({[") - (char in ")}]")
            if char == "," and depth == 0:
                found.append(self.text[start : self.at].strip())
                start = self.at + 1
            self.at += 1
        return [*found, self.text[start:].strip()]

    def value(self, also: str = "") -> Any:
        """Read a value: words stay `Word`s, quoted strings are `str`."""
        if self.take("["):
            return self._items("]", lambda: self.value(IN_LISTS))
        if self.take("{"):
            return dict(self._items("}", self._pair))
        return self.text_or_word("a value", also)

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
        """Return an error that points at the current position."""
        shown = self.text.replace("\n", " ")
        return PipelineSyntaxError(
            f"expected {expected} at column {self.at + 1}\n  {shown}\n  {' ' * self.at}^"
        )
