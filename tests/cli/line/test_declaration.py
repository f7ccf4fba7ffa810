"""What a command declares: arguments and options, of the function that it is."""

import sys
from types import ModuleType
from typing import Annotated, ClassVar, Literal

import pytest

from tiered.cli.commands import load_command
from tiered.cli.line.declaration import (
    REQUIRED,
    DeclaredCommand,
    DeclaredParameter,
    Flags,
    _document,
    _documented_fields,
    declared_as,
    declared_in,
    words_of,
)
from tiered.cli.line.pass_options import OfPass, PassOptions
from tiered.support.records import Record
from tiered.support.typed_options import Option


class Options(Record):
    """Options of each kind."""

    MADE: ClassVar = "no option"
    SAID: ClassVar[str] = "no option"
    _own = 3
    _kept: int = 3
    OTHER = 3
    """No option either."""
    level: Annotated[int, Flags("--level", "-O")] = 2
    """How much
    is done."""
    quiet: bool = False
    in_place: bool = True
    fast: Annotated[bool, Flags("-f", off="--slow")] = True
    order_: Literal["auto", "error"] | None = None
    names: tuple[str, ...] = ()


class Further(Options):
    """More of them."""

    quiet: bool = False
    """Print nothing."""
    count: int  # type: ignore[misc]  # options have no order: it may be required
    """How many."""


def command(
    model: Annotated[str, Flags("MODEL", help="The file.")],
    out_: str = "o",
    /,
    *,
    plain: float | None = 1.0,
    options: Further,
) -> None:
    """Do nothing.

    Args:
        out_: What is
            written.
        plain: One of its own.
    """


def rest(model: str, /, *more: str) -> None:
    """Do nothing."""


KNOWN = DeclaredCommand("command", command)


def test_class_variables_are_no_options() -> None:
    names = {each.option.name for each in declared_in(Options)}
    assert names.isdisjoint({"MADE", "SAID", "OTHER", "_own", "_kept"})
    assert "level" in names


def test_what_a_command_declares_is_read_once_in_a_process() -> None:
    assert load_command("optimize").options is load_command("optimize").options


def test_options_are_typed_as_their_flags_or_names_say() -> None:
    names = {each.name: (each.names, each.off) for each in declared_in(Options)}
    assert names == {
        "level": (("--level", "-O"), ""),
        "quiet": (("--quiet",), ""),
        "in_place": (("--in-place",), "--no-in-place"),
        "fast": (("-f",), "--slow"),
        "order_": (("--order",), ""),
        "names": (("--names",), ""),
    }
    assert {each.within for each in declared_in(Options)} == {Options}


@pytest.mark.parametrize(
    ("kind", "default", "off"),
    [
        (bool, True, "--no-a-b"),
        (bool, False, ""),
        (bool | None, None, ""),
        (bool | None, True, "--no-a-b"),
        (int, 1, ""),
    ],
)
def test_a_switch_that_is_on_has_a_flag_that_sets_it_off(
    kind: object, default: object, off: str
) -> None:
    declared = declared_as(Option("a_b", kind, default), Flags())
    assert (declared.names, declared.off) == (("--a-b",), off)


@pytest.mark.parametrize(
    ("kind", "inner", "is_switch", "is_list", "choices"),
    [
        (int, int, False, False, ()),
        (bool | None, bool, True, False, ()),
        (None | bool, bool, True, False, ()),
        (list[int], list[int], False, False, ()),
        (tuple[int, ...], tuple[int, ...], False, True, ()),
        (int | str | None, int | str | None, False, False, ()),
        (tuple[str, ...] | None, tuple[str, ...], False, True, ()),
        (Literal["a", "b"] | None, Literal["a", "b"], False, False, ("a", "b")),
    ],
)
def test_the_kind_of_an_option(
    kind: object, inner: object, is_switch: bool, is_list: bool, choices: object
) -> None:
    declared = DeclaredParameter(Option("x", kind, None), Flags(), ("-x",))
    assert (declared.kind, declared.is_switch, declared.is_list) == (inner, is_switch, is_list)
    assert declared.choices == choices


def test_arguments_and_options_are_those_of_the_function() -> None:
    assert [(each.names, each.option.default) for each in KNOWN.arguments] == [
        (("MODEL",), REQUIRED),
        (("OUT",), "o"),
    ]
    assert [each.is_required for each in KNOWN.arguments] == [True, False]
    assert not KNOWN.takes_rest
    keys = ("plain", "level", "quiet", "in_place", "fast", "order_", "names", "count")
    found = [(each.key, each.of) for each in KNOWN.options]
    assert found == [(key, "" if key == "plain" else "options") for key in keys]
    assert [each.name for each in KNOWN.options if each.is_required] == ["count"]
    assert KNOWN.groups == {"options": Further}


def test_the_last_argument_may_take_the_rest() -> None:
    known = DeclaredCommand("rest", rest)
    assert known.takes_rest
    assert [(each.names, each.option.default) for each in known.arguments] == [
        (("MODEL",), REQUIRED),
        (("MORE",), ()),
    ]


def test_the_options_of_a_pass_have_their_parameter_before_the_name() -> None:
    def run(*, options: Annotated[PassOptions, OfPass("strip", only=("what",))]) -> None:
        """Do nothing."""

    known = DeclaredCommand("run", run)
    assert [(each.key, each.of) for each in known.options] == [("options.what", "options")]
    assert set(known.groups) == {"options"}


def test_help_is_what_stands_below_a_field_or_in_the_docstring() -> None:
    arguments, options = KNOWN.described()
    said = {each.name: each.option.doc for each in (*arguments, *options)}
    assert said == {
        "model": "The file.", "out_": "What is written.", "plain": "One of its own.",
        "level": "How much is done.", "quiet": "Print nothing.", "count": "How many.",
        "in_place": "", "fast": "", "order_": "", "names": "",
    }  # fmt: skip


def test_a_class_without_a_file_and_a_module_without_a_text_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = type("Made", (Options,), {"__module__": "nowhere"})
    assert _documented_fields(made) == _documented_fields(Options)
    monkeypatch.setitem(sys.modules, "untold", ModuleType("untold"))

    def untold() -> None:
        """Do nothing."""

    untold.__module__ = "untold"
    assert _document(untold) == "\n"
    assert _document(command).startswith("What a command declares")


def test_examples_are_below_the_text_of_the_file() -> None:
    known = load_command("optimize")
    assert known.doc == "Optimise a model and print what changed."
    assert known.examples[0] == "tiered optimize in.onnx out.onnx -O3 --verify"
    assert all(line.startswith("tiered optimize ") for line in known.examples)
    assert (
        KNOWN.doc == "What a command declares: arguments and options, of the function that it is."
    )
    assert KNOWN.examples == ()


def test_only_options_without_their_defaults_have_words() -> None:
    assert words_of(Options()) == ()
    made = Options(
        level=3, quiet=True, in_place=False, fast=False, order_="auto", names=("a", "-b")
    )
    words = (
        "--level=3",
        "--quiet",
        "--no-in-place",
        "--slow",
        "--order=auto",
        "--names=a",
        "--names=-b",
    )
    assert words_of(made) == words
    assert words_of(made, ["level", "names"]) == words[1:-2]
    assert words_of(Further(count=0)) == ("--count=0",)
