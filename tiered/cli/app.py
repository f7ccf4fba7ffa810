"""The names, options and help of the commands; `tiered.cli.commands` implements them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Group, Parameter, UnknownOptionError

from tiered.cli.commands.bisect import BisectOptions
from tiered.cli.commands.completion import (
    Shell,
    complete_backend,
    complete_operator,
    complete_pass,
    run_completion,
)
from tiered.cli.commands.convert import ConvertOptions
from tiered.cli.commands.extract import ExtractOptions
from tiered.cli.commands.merge import MergeOptions
from tiered.cli.commands.partition import PartitionOptions
from tiered.cli.commands.run import RunOptions
from tiered.cli.commands.split import SplitOptions
from tiered.cli.commands.verify import CompareOptions
from tiered.cli.config_file import apply_config_file
from tiered.cli.declare import with_parameters
from tiered.cli.examples import COMMANDS, EXAMPLES, FIRST, with_examples
from tiered.cli.flags import (
    BackendName,
    Names,
    OptimizeOptions,
    ReadOptions,
    Verbose,
    WriteOptions,
)
from tiered.cli.foreign import answer_to, answer_to_command
from tiered.cli.output.failures import WrongCommandLine
from tiered.cli.output.terminal import screen
from tiered.cli.watch import WatchOptions

EPILOGUE = """\
Exit codes: 0 done, 1 model or file error, 2 usage, 3 verification failed (nothing is written), \
4 a target or an expectation not met, 5 a bug in tiered or in a pass, 130 interrupted."""

AsJson = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]


def _version() -> str:
    from tiered import __version__

    return f"tiered {__version__}"


app = App(
    name="tiered",
    help="Optimise ONNX models with passes that can be trusted.",
    help_epilogue=with_examples(EPILOGUE, FIRST),
    help_format="plaintext",
    version=_version,
    suppress_keyboard_interrupt=False,
    config=apply_config_file,
)


@app.command
def optimize(
    model: str,
    out: str | None = None,
    /,
    *more: str,
    options: OptimizeOptions = OptimizeOptions(),
    watch: WatchOptions = WatchOptions(),
) -> int | None:
    """Optimise a model and print what changed.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run, --json and --out-dir.
        more: More models to read; they need --out-dir.
    """
    if more or options.out_dir is not None:
        from tiered.cli.commands.optimize_several import run_several

        sources = [file for file in (model, out, *more) if file is not None]
        return run_several(sources, options, watch)
    from tiered.cli.commands.optimize import run_optimize

    run_optimize(model, out, options, watch)
    return None


@app.command
def convert(
    model: str,
    out: str | None = None,
    /,
    *,
    options: ConvertOptions = ConvertOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Convert a model to another opset, IR version or precision, and print what changed.

    Nodes that cannot be converted to an opset are listed, and nothing is written. With --to, nodes
    that stay float are listed with the reason.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.convert import run_convert

    run_convert(model, out, options, write)


@app.command
def extract(
    model: str,
    out: str | None = None,
    /,
    *,
    options: ExtractOptions = ExtractOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Write the part of a model between tensors, with the weights that it needs.

    Args:
        model: The ONNX file to read; it is never changed.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.extract import run_extract

    run_extract(model, out, options, write)


@app.command
def split(
    model: str,
    /,
    *,
    options: SplitOptions = SplitOptions(),  # noqa: B008 - frozen
) -> None:
    """Write consecutive parts of a model, cut at tensors; `tiered merge` puts them together again.

    A part also returns what later parts read of it, under the same names.

    Args:
        model: The ONNX file to read; it is never changed.
    """
    from tiered.cli.commands.split import run_split

    run_split(model, options)


@app.command
def merge(
    first: Annotated[str, Parameter(name="A")],
    second: Annotated[str, Parameter(name="B")],
    out: str | None = None,
    /,
    *,
    options: MergeOptions = MergeOptions(),
    write: WriteOptions = WriteOptions(),
) -> None:
    """Write two models as one: outputs of A become inputs of B.

    Opsets, functions and names are reconciled; inputs of equal name and type are one input.

    Args:
        first: The ONNX file with the first model.
        second: The ONNX file with the model that reads its outputs.
        out: The file to write. Optional with --dry-run and --json.
    """
    from tiered.cli.commands.merge import run_merge

    run_merge(first, second, out, options, write)


@app.command
def run(
    model: str,
    /,
    *,
    options: RunOptions = RunOptions(),
) -> None:
    """Run a model on onnxruntime, and print statistics of its outputs or of all its values.

    Args:
        model: The ONNX file to read.
    """
    from tiered.cli.commands.run import run_run

    run_run(model, options)


@app.command
def verify(
    first: Annotated[str, Parameter(name="A")],
    second: Annotated[str, Parameter(name="B")],
    /,
    *,
    options: CompareOptions = CompareOptions(),
    as_json: AsJson = False,
) -> None:
    """Run two models on the same inputs and compare their outputs; exit code 3 if they differ.

    Args:
        first: The ONNX file with the correct outputs.
        second: The ONNX file to compare with it.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.verify import run_verify

    run_verify(first, second, options, as_json=as_json)


@app.command
def bisect(
    model: str,
    /,
    *,
    options: BisectOptions = BisectOptions(),
) -> None:
    """Find the first rewrite of the passes that makes a model wrong; exit code 3 if there is one.

    Args:
        model: The ONNX file to read.
    """
    from tiered.cli.commands.bisect import run_bisect

    run_bisect(model, options)


@app.command
def replay(folder: Annotated[str, Parameter(name="DIR")], /) -> None:
    """Run a bundle and print its failure; exit code 3 if it fails, 0 if it is fixed.

    Args:
        folder: The folder that --reproducer wrote.
    """
    from tiered.cli.commands.bisect import run_replay

    run_replay(folder)


@app.command
def reduce(
    model: str,
    out: str,
    /,
    *,
    check: str,
) -> None:
    """Write a smaller model that still fails, given a command that fails on it.

    Args:
        model: The ONNX file to read.
        out: The file to write.
        check: A command; {} is replaced by the model's file. A model fails if the command ends as
            on the whole model.
    """
    from tiered.cli.commands.reduce import run_reduce

    run_reduce(model, out, check)


@app.command
def passes(
    name: Annotated[str | None, Parameter(completer=complete_pass)] = None,
    /,
    *,
    op: Annotated[str | None, Parameter(show_default=False, completer=complete_operator)] = None,
    search: Annotated[str | None, Parameter(show_default=False)] = None,
    load: Names = (),
    as_json: AsJson = False,
) -> None:
    """List all passes, or describe one.

    Args:
        name: A pass, by any of its names, or a glob: 'fuse_*'.
        op: Only passes that rewrite or move nodes of this operator: Conv, com.microsoft::Gelu.
        search: Only passes with this string in their name, law, description, options or aliases.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    from tiered.cli.commands.passes import run_passes

    run_passes(name, op=op, search=search, as_json=as_json)


@app.command
def inspect(
    model: str,
    /,
    *,
    backend: BackendName = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the contents of a model, without changing it.

    Args:
        model: The ONNX file to read.
        backend: Print the number of unsupported nodes of each operator on this target.
    """
    from tiered.cli.commands.inspect import run_inspect

    run_inspect(model, backend=backend, options=options)


@app.command
def explain(
    model: str,
    pass_: Annotated[str, Parameter(name="PASS", completer=complete_pass)],
    /,
    *,
    node: str | None = None,
    after: str = "",
    load: Names = (),
    opt_level: Annotated[int, Parameter(name=["--opt-level", "-O"])] = 2,
    backend: BackendName = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Explain node by node why a pass fires or does not fire, without changing the model.

    Args:
        model: The ONNX file to read.
        pass_: A pass, optionally with options and scope: 'fold_constant{max_growth=0}'.
        node: Only this node, with the matched part before the first failed condition.
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        opt_level: The level, as for `tiered optimize`.
        backend: The target, as for optimize: a name or a TOML file; portable by default.
    """
    from tiered.cli.commands.explain import run_explain
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_explain(
        model,
        pass_,
        node=node,
        after=after,
        opt_level=opt_level,
        backend=backend,
        options=options,
    )


@app.command
def check(
    model: str,
    /,
    *,
    backend: Annotated[str, Parameter(completer=complete_backend)],
    opt_level: Annotated[int, Parameter(name=["--opt-level", "-O"])] = 2,
    edit: Names = (),
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the nodes that a target supports, and why it does not support the others.

    Args:
        model: The ONNX file to read.
        backend: The target: a name that `tiered backends` lists, or a TOML file.
        opt_level: The level of the passes that may replace unsupported nodes.
        edit: Change the pipeline of the target: 'drop a', 'after a: b,c'. Repeatable.
    """
    from tiered.cli.commands.check import run_check

    run_check(model, backend, opt_level=opt_level, edits=edit, options=options)


@app.command
def partition(
    model: str,
    out: str | None = None,
    /,
    *,
    backend: Annotated[str, Parameter(completer=complete_backend)],
    partitions: PartitionOptions = PartitionOptions(),
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the regions of a model that a target takes, and write them.

    Args:
        model: The ONNX file to read.
        out: The file to write: the model with a local function for each region.
        backend: The target: a name that `tiered backends` lists, or a TOML file.
    """
    from tiered.cli.commands.partition import run_partition

    run_partition(model, backend, out, partitions, options)


@app.command
def backends(
    name: Annotated[str | None, Parameter(completer=complete_backend)] = None,
    /,
    *,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the targets of --backend, or describe one.

    Args:
        name: A target, or its TOML file.
        as_json: Print JSON instead of text.
        verbose: List the rules of each operator.
    """
    from tiered.cli.commands.backends import run_backends

    run_backends(name, as_json=as_json, verbose=verbose)


@app.command
def layout(
    model: str,
    /,
    *,
    after: str = "",
    backend: BackendName = None,
    html: Annotated[str | None, Parameter(show_default=False)] = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print the cost of Transposes, which ones can be removed, and what blocks the others.

    A dynamic dim counts as 16.

    Args:
        model: The ONNX file to read; it is not changed.
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        backend: The target; `--after default` runs its pipeline.
        html: Write a page that lists the Transposes, their costs, and the nodes that block them.
    """
    from tiered.cli.commands.layout import run_layout

    run_layout(model, after=after, backend=backend, html=html, options=options)


@app.command
def memory(
    model: str,
    /,
    *,
    default_dim: int = 16,
    in_place: bool = True,
    svg: str | None = None,
    options: ReadOptions = ReadOptions(),
) -> None:
    """Print how many bytes of tensors are alive at the peak, where it is, and what is alive there.

    Constants are counted apart. Inputs are alive all the time.

    Args:
        model: The ONNX file to read; it is not changed.
        default_dim: The size of a dynamic dim without --dim.
        in_place: Elementwise operators write over operands, and reshapes take no memory.
        svg: A file for the curve.
    """
    from tiered.cli.commands.memory import run_memory

    run_memory(model, default_dim=default_dim, in_place=in_place, svg=svg, options=options)


@app.command
def docs(
    name: Annotated[str, Parameter(name="PASS", completer=complete_pass)],
    /,
    *,
    load: Names = (),
    as_json: AsJson = False,
) -> None:
    """Print the reference page of a pass: law, conditions, options, level, place.

    Args:
        name: A pass, by any of its names.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.reference import run_reference
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_reference(name, as_json=as_json)


@app.command
def view(
    model: str,
    after: str | None = None,
    /,
    *,
    browser: bool = True,
) -> None:
    """Open a model in Netron, or two, each in its own tab; needs the extra tiered[view].

    Args:
        model: The ONNX file to read.
        after: A second one, to compare with it.
        browser: Open the browser; else only print the addresses.
    """
    from tiered.cli.commands.view import run_view

    run_view(model, after, browse=browser)


@app.command
def options(*, as_json: AsJson = False) -> None:
    """List the config options of `tiered optimize --set`.

    Args:
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.config_options import run_options

    run_options(as_json=as_json)


@app.command
def new(
    path: Annotated[str, Parameter(name="FOLDER/NAME")],
    /,
    *,
    kind: Literal["rewrite", "function", "module"] = "rewrite",
    root: str = ".",
) -> None:
    """Write a skeleton of a pass and of its failing test.

    Args:
        path: The folder (the operator that the pass rewrites) and the name: shape/fuse_x.
        kind: The object of a rewrite: a pattern, a graph, or a whole model.
        root: The checkout of tiered to write into.
    """
    from tiered.cli.commands.new import run_new

    run_new(path, kind=kind, root=root)


@app.command
def completion(shell: Shell, /) -> None:
    """Print a script for shell completion of commands, options, passes and backends.

    Args:
        shell: The shell.
    """
    run_completion(app, shell)


for _options in (
    BisectOptions,
    CompareOptions,
    ConvertOptions,
    ExtractOptions,
    MergeOptions,
    PartitionOptions,
    RunOptions,
    SplitOptions,
):
    with_parameters(_options)
for _shared in (OptimizeOptions, ReadOptions, WriteOptions):
    Parameter(name="*")(with_parameters(_shared))
Parameter(name="*", group=Group("Watching passes", sort_key=1))(with_parameters(WatchOptions))
for _name in COMMANDS:
    app[_name].help_epilogue = with_examples(EPILOGUE, EXAMPLES[_name])
    with_parameters(app[_name].default_command)


def parsed(tokens: Sequence[str]) -> tuple[str | None, Callable[[], Any]]:
    """Return the file that a command line is about, if any, and a function that runs it.

    Raises:
        WrongCommandLine: it does not parse.
    """
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
    found = answer_to(tokens, error.token.value)
    return None if found is None else f"unknown option {error.token.value}: {found}"
