"""The commands that run models, compare them and search for what is wrong."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tiered.cli.commands.bench import BenchOptions
from tiered.cli.commands.bisect import BisectOptions
from tiered.cli.commands.certify import CertifyOptions
from tiered.cli.commands.diff import DiffOptions
from tiered.cli.commands.profile import ProfileOptions
from tiered.cli.commands.run import RunOptions
from tiered.cli.commands.verify import CompareOptions
from tiered.cli.flags import AsJson, Force, Names


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


def diff(
    first: Annotated[str, Parameter(name="A")],
    second: Annotated[str, Parameter(name="B")],
    /,
    *,
    options: DiffOptions = DiffOptions(),
) -> None:
    """Print what changed between two models: interface, operators, constants, nodes, names.

    Nothing is run. Nodes are matched by what they compute, by their neighbours and by names, so it
    works for the results of any tool.

    Args:
        first: The ONNX file before.
        second: The ONNX file after.
    """
    from tiered.cli.commands.diff import run_diff

    run_diff(first, second, options)


def certify(
    first: Annotated[str, Parameter(name="A")],
    second: Annotated[str, Parameter(name="B")],
    /,
    *,
    options: CertifyOptions = CertifyOptions(),
    as_json: AsJson = False,
) -> None:
    """Prove that two models compute the same; exit code 4 if that is not proved, 3 if it is wrong.

    Args:
        first: The ONNX file before.
        second: The ONNX file after, made by any tool.
        as_json: Print JSON instead of text.
    """
    from tiered.cli.commands.certify import run_certify

    run_certify(first, second, options, as_json=as_json)


def bench(
    first: Annotated[str, Parameter(name="A")],
    /,
    *others: Annotated[str, Parameter(name="B")],
    options: BenchOptions = BenchOptions(),
) -> None:
    """Measure the latency of a model on onnxruntime, or of several side by side.

    The models run alternately, each in a process of its own, in rounds of new processes. Start
    time, memory and file size are printed beside.

    Args:
        first: The ONNX file to measure.
        others: ONNX files with the same inputs, compared with A.
    """
    from tiered.cli.commands.bench import run_bench

    run_bench([first, *others], options)


def profile(
    model: str,
    other: Annotated[str | None, Parameter(name="B", show_default=False)] = None,
    /,
    *,
    options: ProfileOptions = ProfileOptions(),
) -> None:
    """Print where the time of a model goes on onnxruntime: by operator, by layer and by node.

    Of two models, the nodes that do the same work are set side by side.

    Args:
        model: The ONNX file to profile.
        other: An ONNX file with the same inputs, such as the result of a run.
    """
    from tiered.cli.commands.profile import run_profile

    run_profile([model] if other is None else [model, other], options)


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
    from tiered.cli.load_passes import load_passes

    load_passes(options.load)
    run_bisect(model, options)


def replay(folder: Annotated[str, Parameter(name="DIR")], /, *, load: Names = ()) -> None:
    """Run a bundle and print its failure; exit code 3 if it fails, 0 if it is fixed.

    Args:
        folder: The folder that --reproducer or `tiered batch --reproducers` wrote.
        load: As for `tiered optimize`: Python files or modules with passes of your own.
    """
    from tiered.cli.commands.bisect import run_replay
    from tiered.cli.load_passes import load_passes

    load_passes(load)
    run_replay(folder)


def reduce(
    model: str,
    out: str,
    /,
    *,
    check: str,
    force: Force = False,
) -> None:
    """Write a smaller model that still fails, given a command that fails on it.

    Args:
        model: The ONNX file to read.
        out: The file to write.
        check: A command; {} is replaced by the model's file. A model fails if the command ends as
            on the whole model.
        force: Replace OUT even if it is an ONNX model.
    """
    from tiered.cli.commands.reduce import run_reduce

    run_reduce(model, out, check, force=force)


COMMANDS = (run, verify, diff, certify, bench, profile, bisect, replay, reduce)
