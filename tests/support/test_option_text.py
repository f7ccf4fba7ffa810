"""Values as text and back."""

from enum import Enum
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tiered.support.errors import PipelineSyntaxError
from tiered.support.option_text import Scanner, Word, format_value, parse_value
from tiered.support.typed_options import convert

# All characters that have a meaning, and others; to know all of Unicode takes seconds.
TEXT = st.text("".join(map(chr, range(128))) + "\x85\xa0é漢\u2028😀")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)


class Colour(Enum):
    RED = "red"


@given(VALUES)
def test_every_value_reads_back_as_itself(value: Any) -> None:
    assert convert(parse_value(format_value(value)), Any) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1%", "1%"),
        ("NHWC", "NHWC"),
        ("1", "'1'"),
        ("true", "'true'"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", r"'it\'s'"),
        (None, "none"),
        (True, "true"),
        (1.5, "1.5"),
        ([1, "a"], "[1,a]"),
        (("a",), "[a]"),
        ({"b", "a"}, "[a,b]"),
        ({"Pool": "NCHW", "Conv": "NHWC"}, "{Conv: NHWC, Pool: NCHW}"),
        (Colour.RED, "red"),
    ],
)
def test_values_are_written_as_people_write_them(value: Any, text: str) -> None:
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[N=2,M=3]", ["N=2", "M=3"]),
        ("[/a/b=4/rows, onnx::c=2]", ["/a/b=4/rows", "onnx::c=2"]),
        ("['a b=4',c]", ["a b=4", "c"]),
        ("{a: [b=1]}", {"a": ["b=1"]}),
    ],
)
def test_words_of_lists_may_be_pairs(text: str, value: Any) -> None:
    assert convert(parse_value(text), Any) == value


def test_a_bare_word_waits_for_its_option_to_say_what_it_is() -> None:
    assert isinstance(parse_value("12"), Word)
    assert not isinstance(parse_value("'12'"), Word)


@pytest.mark.parametrize(
    ("text", "expected", "column"),
    [("[a", "','", 3), ("'a", "a string that ends", 1), ("a b", "the end", 3), ("", "a value", 1)],
)
def test_an_error_points_at_the_place(text: str, expected: str, column: int) -> None:
    with pytest.raises(PipelineSyntaxError) as caught:
        parse_value(text)
    assert expected in str(caught.value)
    assert f"column {column}\n" in str(caught.value)
    assert str(caught.value).splitlines()[-1].index("^") == column + 1


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", [""]),
        ("a, b ,", ["a", "b", ""]),
        ("a{x=[1,2],y=3}, b", ["a{x=[1,2],y=3}", "b"]),
        ("a@'/x,y/**',b", ["a@'/x,y/**'", "b"]),
        ("a@'it\\'s,one',b", ["a@'it\\'s,one'", "b"]),
    ],
)
def test_entries_of_a_list_are_apart_outside_of_brackets_and_quotes(
    text: str, entries: list[str]
) -> None:
    assert Scanner(text).entries() == entries


def test_a_list_with_an_open_quote_is_an_error() -> None:
    with pytest.raises(PipelineSyntaxError, match="a string that ends with '"):
        Scanner("a,b@'x").entries()
