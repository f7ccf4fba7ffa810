"""Typed options of passes and of the context."""

from enum import Enum
from typing import Any, Literal

import pytest

from tiered.support.config_options import checked_config, config_options, register_config_option
from tiered.support.errors import ConfigError, OptionError, UsageError
from tiered.support.option_text import Word
from tiered.support.typed_options import (
    Option,
    Size,
    checked_options,
    convert,
    describe,
    options_of,
    size_in_bytes,
)

SHARE = Size("1%")


class Layout(Enum):
    NCHW = "nchw"


def options(
    graph: object,
    *,
    flag: bool = False,
    size: Size = SHARE,
    mode: Literal["a", "b"] = "a",
    names: list[str] | None = None,
) -> None:
    """Do something.

    Args:
        graph: not an option.
        flag: whether to do it,
            and how.
        size: how much.

    Raises:
        nothing: at all.
    """


def test_keyword_only_parameters_are_the_options() -> None:
    found = {option.name: option for option in options_of(options, "p")}
    assert list(found) == ["flag", "size", "mode", "names"]
    assert found["flag"].doc == "whether to do it, and how."
    assert found["size"].doc == "how much."
    assert found["names"].takes == "a list of text or none"


def test_annotations_that_are_text_are_read_one_by_one() -> None:
    def lazily(graph: "NotImportedHere", *, size: "int | None" = None) -> None:  # type: ignore[name-defined]  # noqa: F821 - the point
        pass

    assert [option.type for option in options_of(lazily, "p")] == [int | None]


def test_an_option_needs_a_default_of_its_type() -> None:
    def without(graph: object, *, size: int) -> None: ...
    def wrong(graph: object, *, size: int = "large") -> None: ...  # type: ignore[assignment]  # the point

    with pytest.raises(UsageError, match="'size' needs a default"):
        options_of(without, "p")
    with pytest.raises(OptionError, match="'size' takes an integer, not 'large'"):
        options_of(wrong, "p")


@pytest.mark.parametrize(
    ("value", "kind", "converted"),
    [
        (True, bool, True),
        (Word("true"), bool, True),
        (3, float, 3.0),
        (Word("3"), int, 3),
        (Word("3"), str, "3"),
        (Word("1e-3"), float, 1e-3),
        (64, Size, "64"),
        (Word("2%"), Size, "2%"),
        (Word("b"), Literal["a", "b"], "b"),
        (Word("2"), Literal[1, 2], 2),
        ("nchw", Layout, Layout.NCHW),
        (Word("NCHW"), Layout, Layout.NCHW),
        (["a"], tuple[str, ...], ("a",)),
        (("a",), list[str], ["a"]),
        ([Word("1")], list[int], [1]),
        ({Word("Conv"): Word("NHWC")}, dict[str, str], {"Conv": "NHWC"}),
        (None, int | None, None),
        (Word("none"), int | None, None),
        (Word("none"), str, "none"),
        (Word("7"), int | str, 7),
        (Word("1.5"), Any, 1.5),
        (Word("x"), Any, "x"),
        (Word("7"), Any, 7),
        (Word("true"), Any, True),
        (Word("none"), Any, None),
        ({1: Word("2")}, Any, {"1": 2}),
        ([Word("false"), "7"], Any, [False, "7"]),
        (2.5, Any, 2.5),
        (Word("false"), bool, False),
        (2, float, 2.0),
        (2.5, float, 2.5),
        (Layout.NCHW, Layout, Layout.NCHW),
        ("NCHW", Layout, Layout.NCHW),
        ({"a": [1]}, dict[str, tuple[int, ...]], {"a": (1,)}),
        ({"a": 1}, dict, {"a": 1}),
        ([Word("1"), Word("1")], set[int], {1}),
        ((1, "a"), list, [1, "a"]),
        (Word("a"), Literal["a", 1], "a"),
        ("2", int | str, "2"),
        ("1.5 MiB", Size, "1.5 MiB"),
    ],
)
def test_values_are_taken_as_the_type_of_the_option(value: Any, kind: Any, converted: Any) -> None:
    result = convert(value, kind)
    assert result == converted
    assert type(result) is type(converted)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, bool),
        (True, int),
        (True, float),
        ("1", int),
        (1.5, int),
        (Word("yes"), bool),
        (Word("x"), int),
        ("abc", list[str]),
        ({"a": 1}, list[str]),
        ([1], list[str]),
        (["a"], dict[str, str]),
        ("c", Literal["a", "b"]),
        ("1XB", Size),
        (-1, Size),
        ("red", Layout),
        (None, str),
        (True, Size),
        (1.5, Size),
        ("-1", Size),
        (1.0, Literal[1]),
        ("1", Literal[1, 2]),
        (Word("none"), bool),
        (Word("true"), type(None)),
        ({"a": "b"}, dict[str, int]),
        (3, list[int]),
        ("a", int | None),
    ],
)
def test_values_of_another_type_are_refused(value: Any, kind: Any) -> None:
    with pytest.raises(OptionError, match="'o' takes"):
        Option("o", kind, None).checked(value, "p")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (bool, "true or false"),
        (Literal["a", "b"], "one of a, b"),
        (Layout, "one of nchw"),
        (dict[str, int], "a mapping from text to an integer"),
        (list[Size], "a list of a size such as 64, 1MB or 2%"),
        (list, "a list"),
        (int | None, "an integer or none"),
        (Any, "anything"),
        (dict, "a mapping from anything to anything"),
        (tuple[int, ...], "a list of an integer"),
        (float | str, "a number or text"),
        (bytes, "bytes"),
        (Literal[1, None], "one of 1, none"),
    ],
)
def test_a_type_is_said_in_words(kind: Any, words: str) -> None:
    assert describe(kind) == words


def test_an_unknown_option_is_named_with_what_there_is() -> None:
    known = (Option("max_growth", Size, Size("1%")), Option("deep", bool, False))
    with pytest.raises(OptionError) as caught:
        checked_options(known, {"max_grow": 1}, "fold_constant")
    message = str(caught.value)
    assert message.startswith("fold_constant has no option 'max_grow'; did you mean 'max_growth'?")
    assert message.endswith("(it takes max_growth, deep)")


@pytest.mark.parametrize(
    ("size", "whole", "expected"),
    [
        ("64", 0, 64),
        ("1KB", 0, 1000),
        ("1KiB", 0, 1024),
        ("1.5MB", 0, 1500000),
        ("2%", 1000, 20),
        ("5B", 0, 5),
        ("1MiB", 0, 1 << 20),
        ("3GB", 0, 3 * 10**9),
        ("2GiB", 0, 2 << 30),
        ("4KB", 7, 4000),
        ("0.25%", 1000, 2),
        ("100%", 7, 7),
        (" 1 kib ", 0, 1024),
        ("2MB", 0, 2_000_000),
    ],
)
def test_sizes_are_bytes_or_shares(size: str, whole: int, expected: int) -> None:
    assert size_in_bytes(size, whole) == expected


def test_a_text_that_is_no_size_is_refused() -> None:
    with pytest.raises(OptionError, match="'lots' is not a size such as"):
        size_in_bytes("lots", 1)


def test_config_options_are_checked_by_name_and_type() -> None:
    assert checked_config({"remarks.examples": 3}) == {"remarks.examples": 3}
    with pytest.raises(ConfigError, match=r"did you mean 'remarks\.examples'"):
        checked_config({"remarks.example": 3})
    with pytest.raises(ConfigError, match="takes an integer, not 'x'"):
        checked_config({"remarks.examples": "x"})


def test_every_config_option_says_what_it_is_for() -> None:
    assert all(option.doc for option in config_options().values())


def test_a_config_option_cannot_be_registered_as_something_else() -> None:
    known = config_options()["remarks.examples"]
    assert register_config_option(known.name, known.type, known.default, known.doc) == known
    with pytest.raises(ConfigError, match="registered already"):
        register_config_option(known.name, bool, True, "another")


def test_options_without_an_annotation_are_of_the_type_of_their_default() -> None:
    def plain(graph, *, size=3, what=None):  # type: ignore[no-untyped-def]  # the point
        pass

    assert [option.type for option in options_of(plain, "p")] == [int, Any]

    def none(graph: object) -> None: ...

    assert options_of(none, "p") == ()


class Settings:
    """Settings of something.

    Args:
        size: how much.
    """

    def __init__(self, size: int = 3, *more: int, deep: "bool" = False) -> None: ...


def test_all_named_parameters_of_a_class_are_options() -> None:
    found = options_of(Settings, "p")
    assert [(option.name, option.type, option.doc) for option in found] == [
        ("size", int, "how much."),
        ("deep", bool, ""),
    ]


def test_what_is_not_given_has_its_default() -> None:
    known = (Option("size", int, 3), Option("names", list[str], ["a"]))
    assert checked_options(known, {"size": Word("5")}, "p") == {"size": 5, "names": ["a"]}
    with pytest.raises(OptionError, match=r"p has no option 'size' \(it takes none\)"):
        checked_options((), {"size": 1}, "p")
    assert hash(known[1]) == hash(Option("names", int, None))
    assert hash(known[1]) != hash(known[0])
