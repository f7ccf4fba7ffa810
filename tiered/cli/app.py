"""The command line that cyclopts reads: all commands of `tiered.cli.declarations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import App, ArgumentCollection, CycloptsError, Group, Parameter, UnknownOptionError

from tiered.cli.command_flags import (
    CheckOptions,
    DoctorOptions,
    InspectOptions,
    ReadOptions,
    WriteOptions,
)
from tiered.cli.commands.batch import BatchOptions, FolderOptions
from tiered.cli.commands.bench import BenchOptions
from tiered.cli.commands.bisect import BisectOptions
from tiered.cli.commands.completion import Shell, run_completion
from tiered.cli.commands.convert import ConvertOptions
from tiered.cli.commands.diff import DiffOptions
from tiered.cli.commands.extract import ExtractOptions
from tiered.cli.commands.gradient import GradientOptions
from tiered.cli.commands.merge import MergeOptions
from tiered.cli.commands.partition import PartitionOptions
from tiered.cli.commands.prepare import PreparationOptions
from tiered.cli.commands.profile import ProfileOptions
from tiered.cli.commands.quantize import QuantizeOptions
from tiered.cli.commands.run import RunOptions
from tiered.cli.commands.sensitivity import SensitivityOptions
from tiered.cli.commands.split import SplitOptions
from tiered.cli.commands.tune import TuneOptions
from tiered.cli.commands.verify import CompareOptions
from tiered.cli.commands.version import asks_for_details, run_version
from tiered.cli.config_file import apply_config_file
from tiered.cli.declarations import catalogue, debug, read, write
from tiered.cli.declarations.batch import batch
from tiered.cli.declare import with_parameters, with_whole_paragraphs
from tiered.cli.effects import note_typed
from tiered.cli.examples import COMMANDS, EXAMPLES, FIRST, with_examples
from tiered.cli.flags import OptimizeOptions
from tiered.cli.foreign import answer_to, answer_to_command
from tiered.cli.output.failures import WrongCommandLine
from tiered.cli.output.terminal import screen
from tiered.cli.watch import WatchOptions

EPILOGUE = """\
Exit codes: 0 done, 1 model or file error, 2 usage, 3 verification failed (nothing is written), \
4 what was asked for cannot be done, or a target or an expectation is not met, \
5 a bug in tiered or in a pass, 130 interrupted."""

BATCH_EPILOGUE = """\
Exit codes: 0 all models done, 1 a model failed, 2 usage, 130 interrupted."""


def _version() -> str:
    from tiered import __version__

    return f"tiered {__version__}"


def _note_typed(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Remember which options were typed, before those of a file are added."""
    note_typed({token.keyword for each in arguments for token in each.tokens if token.keyword})


app = App(
    name="tiered",
    help="Optimise ONNX models with passes that can be trusted.",
    help_epilogue=with_examples(EPILOGUE, FIRST),
    help_format="plaintext",
    version=_version,
    suppress_keyboard_interrupt=False,
    config=(_note_typed, apply_config_file),
)


@app.command
def completion(shell: Shell, /) -> None:
    """Print a script for shell completion of commands, options, passes and backends.

    Args:
        shell: The shell.
    """
    run_completion(app, shell)


for _commands in (write.COMMANDS, read.COMMANDS, debug.COMMANDS, catalogue.COMMANDS):
    for _command in _commands:
        app.command(_command)
app.command(batch)
for _options in (
    BatchOptions,
    BenchOptions,
    BisectOptions,
    CompareOptions,
    ConvertOptions,
    DiffOptions,
    ExtractOptions,
    FolderOptions,
    GradientOptions,
    MergeOptions,
    PartitionOptions,
    PreparationOptions,
    ProfileOptions,
    QuantizeOptions,
    RunOptions,
    SensitivityOptions,
    SplitOptions,
    TuneOptions,
):
    with_parameters(_options)
for _shared in (
    CheckOptions,
    DoctorOptions,
    InspectOptions,
    OptimizeOptions,
    ReadOptions,
    WriteOptions,
):
    Parameter(name="*")(with_parameters(_shared))
Parameter(name="*", group=Group("Watching passes", sort_key=1))(with_parameters(WatchOptions))
for _name in COMMANDS:
    app[_name].help = with_whole_paragraphs(app[_name].help)
    app[_name].help_epilogue = with_examples(EPILOGUE, EXAMPLES[_name])
    with_parameters(app[_name].default_command)
batch.help_epilogue = with_examples(BATCH_EPILOGUE, EXAMPLES["batch"])
for _name in ("quantize", "verify", "check", "inspect"):
    batch[_name].help = with_whole_paragraphs(batch[_name].help)
    batch[_name].help_epilogue = batch.help_epilogue
    with_parameters(batch[_name].default_command)


def parsed(tokens: Sequence[str]) -> tuple[str | None, Callable[[], Any]]:
    """Return the file that a command line is about, if any, and a function that runs it.

    Raises:
        WrongCommandLine: it does not parse.
    """
    if asks_for_details(tokens):
        return None, run_version
    try:
        command, bound, _ = app.parse_args(
            tokens, console=screen(), exit_on_error=False, print_error=False
        )
    except CycloptsError as error:
        answer = answer_to_command(tokens, COMMANDS) or _answer(error, tokens)
        raise WrongCommandLine(error, answer) from error
    return bound.arguments.get("model"), lambda: command(*bound.args, **bound.kwargs)


def _answer(error: CycloptsError, tokens: Sequence[str]) -> str | None:
    """Return the message for an option of another tool."""
    if not isinstance(error, UnknownOptionError):
        return None
    # Of an option that takes a value elsewhere, the token has the name as its keyword.
    option = error.token.value or error.token.keyword or ""
    found = answer_to(tokens, option)
    return None if found is None else f"unknown option {option}: {found}"
