"""What --disable, --require and --strip take, and the levels of -O."""

import pytest

from tests.recorded import assert_values
from tiered.cli.pass_names import (
    check_level,
    level_set,
    split_names,
    split_required,
    strip_pass,
    stripped_parts,
)
from tiered.support.errors import PipelineSyntaxError, UsageError


def test_levels_are_0_to_4() -> None:
    for level in range(5):
        check_level(level)
    for level in (-1, 5):
        with pytest.raises(UsageError, match=f"-O takes 0 to 4, not {level}"):
            check_level(level)


def test_the_default_level_is_not_set() -> None:
    assert [level_set(level) for level in range(5)] == [0, 1, None, 3, 4]


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ([], ()),
        (["a"], ("a",)),
        (["a, b ", "c"], ("a", "b", "c")),
        (["a{x=1,y=2},b"], ("a{x=1,y=2}", "b")),
        (["a@'/x,y/*',b"], ("a@'/x,y/*'", "b")),
        (["fuse_*"], ("fuse_*",)),
    ],
)
def test_commas_separate_names_outside_of_brackets_and_quotes(
    entries: list[str], names: object
) -> None:
    assert split_names(entries, "--disable") == names


@pytest.mark.parametrize("entries", [[""], ["a,"], [",a"], ["a", " "]])
def test_an_empty_name_is_an_error(entries: list[str]) -> None:
    with pytest.raises(
        UsageError, match=f"^--disable: an empty pass name in '{', '.join(entries)}'"
    ):
        split_names(entries, "--disable")


def test_a_quote_must_end() -> None:
    with pytest.raises(PipelineSyntaxError, match="a string that ends with '"):
        split_names(["a@'x"], "--disable")


def test_parts_to_strip_are_options_of_one_pass() -> None:
    assert str(strip_pass(["docs"])) == "strip{what=[docs]}"
    assert str(strip_pass(["names,docs", "marks", "names"])) == "strip{what=[names,docs,marks]}"
    assert str(strip_pass(["metadata", "all"])) == "strip{what=[metadata,all]}"


def test_an_unknown_part_is_named() -> None:
    message = r"^--strip takes metadata, names, docs, marks, all, not 'dcos'; did you mean 'docs'\?"
    with pytest.raises(UsageError, match=message):
        strip_pass(["names,dcos"])
    with pytest.raises(UsageError, match="--strip: an empty pass name in ''"):
        strip_pass([""])


@pytest.mark.parametrize(
    ("entry", "names", "edits"),
    [
        ("a", ("a",), ()),
        ("a{x=1}", ("a",), ("set a{x=1}",)),
        ("a{x={N: 1}, y=2}", ("a",), ("set a{x={N: 1}, y=2}",)),
        ("a{}", ("a",), ("set a{}",)),
        ("a{x=1}@'/encoder/*'", ("a@'/encoder/*'",), ("set a{x=1}",)),
        ("a@'/{x}/*'", ("a@'/{x}/*'",), ()),
        ("a}x", ("a}x",), ()),
        ("a{x=1}, b, c{y=2}", ("a", "b", "c"), ("set a{x=1}", "set c{y=2}")),
    ],
)
def test_the_options_of_a_required_pass_are_an_edit(
    entry: str, names: object, edits: object
) -> None:
    assert split_required([entry]) == (names, edits)


def test_a_required_entry_without_its_closing_bracket_stays() -> None:
    assert split_required(["a{x=1"]) == (("a{x=1",), ())


def test_an_empty_required_name_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"^--require: an empty pass name"):
        split_required(["a,,b"])


def test_names_are_recorded() -> None:
    names = {
        "split": split_names,
        "required": split_required,
        "parts": stripped_parts,
        "strip": lambda *given: str(strip_pass(given)),
    }
    assert_values(__file__, names)
