"""The reader of the command line: what each way to type an option comes to."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import onnx
import pytest

from tests.cli.test_main import environment
from tiered.cli.commands import load_command
from tiered.cli.line.declaration import Command, Flags, words_of
from tiered.cli.line.reader import Line, WrongLine, read
from tiered.cli.options import Verify
from tiered.support.errors import UsageError
from tiered.support.records import Record


class Options(Record):
    """Options of each kind."""

    MADE: ClassVar = "no option"
    SAID: ClassVar[str] = "no option"
    level: Annotated[int, Flags("--level", "-O")] = 2
    rate: float | None = None
    quiet: Annotated[bool, Flags("--quiet", "-q")] = False
    verbose: Annotated[bool, Flags("--verbose", "-v")] = False
    in_place: bool = True
    order: Literal["auto", "error"] = "auto"
    kind: Literal["int8", "int4"] | None = None
    backend: str | None = None
    names: tuple[str, ...] = ()
    verify: Verify = None


def command(model: str, out: str | None = None, /, *more: str, options: Options) -> None:
    """Do nothing."""


def line_of(text: str) -> Line:
    return read(Command("command", command), text.split())


def test_class_variables_are_no_options() -> None:
    names = {each.option.name for each in Command("command", command).options}
    assert names.isdisjoint({"MADE", "SAID"})
    assert "level" in names


def test_what_a_command_declares_is_read_once_in_a_process() -> None:
    assert load_command("optimize").options is load_command("optimize").options


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
        read(Command("short", short), ["a", "b", "c"])


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


def _modules_of(*tokens: str | Path) -> set[str]:
    program = (
        "import sys, tiered.cli.run as r; code, own = r.run(sys.argv[1:]); "
        "print(code, own, *sys.modules)"
    )
    command = [sys.executable, "-c", program, *map(str, tokens)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, check=True
    )
    code, own, *modules = ended.stdout.split()
    assert (code, own) == ("0", "True")
    return set(modules)


def test_a_quiet_line_does_not_load_rich(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    assert not modules & {"rich", "rich.console", "tiered.cli.line.help", "difflib", "tomllib"}


def test_a_quiet_line_loads_nothing_for_other_commands_and_targets(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    few_runs_need = {
        "logging",
        "tomllib",
        "tiered.targets.backend",
        "tiered.targets.rules",
        "tiered.cli.facts",
        "tiered.graph.edits.inline",
        "tiered.graph.edits.opset",
        "tiered.graph.edits.outline",
        "tiered.graph.edits.unroll",
        "tiered.graph.shape_inference.set_input_shapes",
        "tiered.analysis.legalization.sources",
    }
    assert modules & few_runs_need == set()


@pytest.mark.parametrize("out", ["out.onnx", "missing/out.onnx"])
def test_a_process_that_ends_at_once_has_written_all(small: Path, out: str) -> None:
    """Its output is a pipe, in which Python buffers; exit functions run, as of `--max-memory`."""
    command = [sys.executable, "-m", "tiered", "optimize", str(small), str(small.parent / out)]
    program = f"import atexit; atexit.register(print, 'exit function'); {_PROCESS}"
    for line in (command, [sys.executable, "-c", program, *command[3:]]):
        ended = subprocess.run(
            line, capture_output=True, text=True, env=environment(), timeout=300, check=False
        )
        is_fine = out == "out.onnx"
        assert ended.returncode == (0 if is_fine else 1)
        assert ("out.onnx" in ended.stdout) is is_fine
        assert ("exit function" in ended.stdout) is (line[1] == "-c")
        assert bool(ended.stderr) is not is_fine
        if is_fine:
            onnx.load(small.parent / out)
            os.remove(small.parent / out)


_PROCESS = "from tiered.cli import process; process()"
