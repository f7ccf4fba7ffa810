"""The reader of the command line: what each way to type an option comes to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from tests.recorded import assert_values
from tiered.cli.line.declaration import DeclaredCommand, Flags, words_of
from tiered.cli.line.reader import CommandLine, WrongLine, read
from tiered.cli.shared_options import Verify
from tiered.support.errors import UsageError
from tiered.support.records import Record


def _check_level(level: int) -> None:
    if level > 8:
        raise WrongLine("too high")


class Options(Record):
    """Options of each kind."""

    MADE: ClassVar = "no option"
    SAID: ClassVar[str] = "no option"
    level: Annotated[int, Flags("--level", "-O", check=_check_level)] = 2
    rate: float | None = None
    quiet: Annotated[bool, Flags("--quiet", "-q")] = False
    verbose: Annotated[bool, Flags("--verbose", "-v")] = False
    in_place: bool = True
    order: Literal["auto", "error"] = "auto"
    kind: Literal["int8", "int4"] | None = None
    backend: str | None = None
    names: tuple[str, ...] = ()
    verify: Verify = None
    needed: bool | None = None
    parts: Annotated[tuple[str, ...], Flags("--parts", "-p", splits=True)] = ()


def command(model: str, out: str | None = None, /, *more: str, options: Options) -> None:
    """Do nothing."""


def line_of(text: str) -> CommandLine:
    return read(DeclaredCommand("command", command), text.split())


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("-O3 -q", {"level": 3, "quiet": True}),
        ("-O 3 -qv", {"level": 3, "quiet": True, "verbose": True}),
        ("-O=3", {"level": 3}),
        ("--level -1 --rate .5", {"level": -1, "rate": 0.5}),
        ("--rate none --backend none", {"backend": "none"}),
        ("--no-in-place", {"in_place": False}),
        ("--in_place --quiet=true --verbose=no", {"quiet": True}),
        ("--in-place=false", {"in_place": False}),
        ("--no-in-place=false", {}),
        ("--order error --kind=int4", {"order": "error", "kind": "int4"}),
        ("--names a,b --names=-c", {"names": ("a,b", "-c")}),
        ("--backend= --names n=1", {"backend": "", "names": ("n=1",)}),
        ("--verify", {"verify": "each"}),
        ("--verify -q", {"verify": "each", "quiet": True}),
        ("--verify final", {"verify": "final"}),
        ("--verify=anything", {"verify": "anything"}),
        ("--verify ./final", {"verify": "each", "out": "./final"}),
        ("--verify b.onnx --quiet", {"verify": "each", "out": "b.onnx", "quiet": True}),
        ("--verify - -q", {"verify": "each", "out": "-", "quiet": True}),
        ("--verify= -q", {"verify": "", "quiet": True}),
        ("-q=false", {}),
        ("-vq", {"quiet": True, "verbose": True}),
        ("-vO3", {"level": 3, "verbose": True}),
        ("-vO=3", {"level": 3, "verbose": True}),
        ("--quiet=YES", {"quiet": True}),
        ("--quiet=1 --verbose=0", {"quiet": True}),
        ("-O -3", {"level": -3}),
        ("--level 8", {"level": 8}),
        ("-3", {"out": "-3"}),
        ("-.5x", {"out": "-.5x"}),
        ("-", {"out": "-"}),
        ("--names -", {"names": ("-",)}),
        ("--kind none", {}),
        ("--needed=false", {"needed": False}),
        ("--needed", {"needed": True}),
        ("-pa,,b -p c --parts=,", {"parts": ("a", "b", "c")}),
    ],
)
def test_options_are_read_in_all_their_forms(text: str, values: dict[str, object]) -> None:
    line = line_of(f"a.onnx {text}")
    defaults = {each.name: each.option.default for each in line.command.options}
    expected = {"model": "a.onnx", "out": None, "more": (), **defaults, **values}
    assert line.values == expected


def test_what_was_typed_is_known_also_with_its_default_value() -> None:
    line = line_of("a.onnx -O2 --no-in-place")
    assert line.given == {"level", "in_place"}
    assert line.typed == {"-O", "--no-in-place"}


def test_a_file_that_exists_is_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "finl").touch()
    assert line_of("a.onnx --verify finl").values["out"] == "finl"


def test_an_unknown_option_is_named_as_it_was_typed() -> None:
    for text, unknown in (("a --levle=3", "--levle=3"), ("a -qz9", "-z9"), ("a -q=maybe", "")):
        with pytest.raises(WrongLine) as caught:
            line_of(text)
        assert caught.value.unknown == unknown


def test_typed_options_take_precedence_over_those_of_the_file(tmp_path: Path) -> None:
    class FromFile(Record):
        """Options."""

        config: str | None = None
        level: int = 2
        names: tuple[str, ...] = ()
        quiet: bool = False

    def some(model: str, /, *, options: FromFile) -> None:
        """Do nothing."""

    path = tmp_path / "options.toml"
    path.write_text('level = 3\nnames = ["a", "b"]\nquiet = true\n')
    known = DeclaredCommand("some", some)
    values = read(known, ["m", "--config", str(path), "--names", "c"]).values
    assert (values["level"], values["names"], values["quiet"]) == (3, ("c",), True)
    line = read(known, ["m", "--config", str(path)])
    assert line.values["names"] == ("a", "b")
    assert line.given == {"config"}


def test_a_line_calls_its_function_with_all_that_it_declares() -> None:
    called: list[object] = []

    def call(model: str, out: str | None = None, /, *more: str, plain: int = 1, of: Options) -> int:
        """Do nothing."""
        called.extend((model, out, more, plain, of))
        return 7

    known = DeclaredCommand("call", call)
    assert read(known, ["m", "o", "p", "q", "--plain", "2", "-q"]).call() == 7
    assert called == ["m", "o", ("p", "q"), 2, Options(quiet=True)]
    called.clear()
    read(known, ["m"]).call()
    assert called == ["m", None, (), 1, Options()]


def test_an_option_without_a_default_must_be_given() -> None:
    def strict(*, count: int) -> None:
        """Do nothing."""

    assert read(DeclaredCommand("strict", strict), ["--count", "3"]).values == {"count": 3}
    with pytest.raises(WrongLine, match='Command "strict" parameter --count requires an argument'):
        read(DeclaredCommand("strict", strict), [])


def test_words_without_a_flag_are_arguments_in_order() -> None:
    line = line_of("a -q b c -- -O3 d")
    assert (line.values["model"], line.values["out"]) == ("a", "b")
    assert line.rest == ("c", "-O3", "d")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'Command "command" parameter MODEL requires an argument'),
        ("a --backend", 'Command "command" parameter --backend requires an argument'),
        ("a --names -q", 'Command "command" parameter --names requires an argument'),
        ("a -O three", 'Invalid value for -O: unable to convert "three" into int'),
        ("a --level 1.5", 'Invalid value for --level: unable to convert "1.5" into int'),
        ("a -O3x", 'Invalid value for -O: unable to convert "3x" into int'),
        ("a -q -q", "Parameter -q specified multiple times"),
        ("a -O1 --level 1", "Parameter --level specified multiple times"),
        ("a --quiet=maybe", 'Invalid value for --quiet: unable to convert "maybe" into bool'),
        ("a --no-quiet", "Unknown option: --no-quiet. Did you mean --quiet?"),
        ("a --levle=3", "Unknown option: --levle. Did you mean --level?"),
        ("a -z", "Unknown option: -z"),
        ("a -qz", "Unknown option: -z"),
        ("a -q3", "Unknown option: -3"),
        ("a -q-", "Unknown option: --"),
        ("a -q-level=3", "Unknown option: --level"),
        ("a --quite=1", "Unknown option: --quite. Did you mean --quiet?"),
        ("a -q=", 'Invalid value for -q: unable to convert "" into bool'),
        ("a --level none", 'Invalid value for --level: unable to convert "none" into int'),
        ("a --rate x", 'Invalid value for --rate: unable to convert "x" into float'),
        ("a --level 9", "too high"),
        ("a --level -- 9", 'Command "command" parameter --level requires an argument'),
        ("a --names", 'Command "command" parameter --names requires an argument'),
        ("a --in-place --no-in-place", "Parameter --no-in-place specified multiple times"),
        ("a --order x", 'Invalid value "x" for --order. Choose from: "auto", "error"'),
        (
            "a --kind int3",
            'Invalid value "int3" for --kind. Choose from: "int8", "int4". Did you mean "int8"?',
        ),
    ],
)
def test_a_wrong_line_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(WrongLine) as caught:
        line_of(text)
    assert str(caught.value) == message


def test_a_word_that_is_neither_a_value_nor_a_file_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"'finl' is neither a method nor a file; type --verify="):
        line_of("a.onnx --verify finl")


def test_a_command_without_the_rest_refuses_more_words() -> None:
    def short(model: str, /) -> None:
        """Do nothing."""

    with pytest.raises(WrongLine, match=r"^Unused Tokens: \['b', 'c'\]$"):
        read(DeclaredCommand("short", short), ["a", "b", "c"])


def test_options_are_words_that_read_as_the_same_options() -> None:
    options = Options(level=3, quiet=True, in_place=False, names=("a,b", "-c"), verify="final")
    words = words_of(options)
    assert words == (
        *("--level=3", "--quiet", "--no-in-place", "--names=a,b", "--names=-c", "--verify=final"),
    )
    line = line_of(f"a.onnx {' '.join(words)}")
    assert (
        Options(**{each.name: line.values[each.name] for each in line.command.options}) == options
    )
    assert words_of(options, ("names", "verify", "level")) == ("--quiet", "--no-in-place")
    assert words_of(Options()) == ()


class Around(Record):
    """Options of what a command runs in."""

    name: str = "a"

    @contextmanager
    def around(self) -> Iterator[None]:
        """Note the beginning and the end."""
        SEEN.append(f"in {self.name}")
        yield
        SEEN.append("out")


SEEN: list[str] = []


def test_a_command_runs_in_what_its_options_say() -> None:
    def inside(*, options: Options, around: Around) -> None:
        """Note that it runs."""
        SEEN.append(f"level {options.level}")

    read(DeclaredCommand("inside", inside), ["--name", "b"]).call()
    assert SEEN == ["in b", "level 2", "out"]


def test_lines_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("final").write_text("")
    Path("o.toml").write_text("level = 3\nquiet = true\n")

    def shown(text: str) -> object:
        line = line_of(text)
        changed = {
            each.name: line.values[each.name]
            for each in (*line.command.arguments, *line.command.options)
            if line.values[each.name] != each.option.default
        }
        return changed, sorted(line.given), sorted(line.typed), line.rest

    assert_values(__file__, {"shown": shown})
