"""`tiered bisect MODEL` and `tiered replay DIR`: find the wrong rewrite, and replay a bundle.

With `--json`, `bisect` prints one object: wrong (whether anything is), and if so kind, pass,
rewrite, rewrites, law, node, symptom, before, after, needs, runs, reproducer (the folder or null).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tiered.cli.commands.verify import NumericClass
from tiered.cli.files import check_input, load_model
from tiered.cli.flags import (
    LEVELS,
    BackendName,
    Disable,
    Flag,
    InputShapes,
    Names,
    Pipeline,
    Require,
    split_names,
    split_required,
)
from tiered.cli.load_passes import with_loads
from tiered.cli.output.terminal import notes, print_json, printable, results
from tiered.cli.shapes import parse_dims, parse_shapes, shapes_of_inputs
from tiered.cli.watch import config_of
from tiered.support.errors import PassNotFoundError, UsageError, VerificationError

if TYPE_CHECKING:
    from tiered.extensions.debug import Blame, Oracle, Subject


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class BisectOptions:
    """The options of `tiered bisect`."""

    opt_level: Annotated[int, Parameter(name=["--opt-level", "-O"])] = 2
    """As for `tiered optimize`."""
    disable: Disable = ()
    """As for `tiered optimize`."""
    require: Require = ()
    """As for `tiered optimize`."""
    load: Names = ()
    """As for `tiered optimize`: Python files or modules with passes of your own."""
    passes: Pipeline = None
    """As for `tiered optimize`."""
    backend: BackendName = None
    """As for `tiered optimize`."""
    edit: Names = ()
    """As for `tiered optimize`."""
    input_shape: InputShapes = ()
    """As for `tiered optimize`; the original is the model with these shapes."""
    dim: Names = ()
    """As for `tiered optimize`, and `--input-shape`."""
    set: Names = ()
    """As for `tiered optimize`: a config option, NAME=VALUE."""
    numerics: Annotated[NumericClass | None, Parameter(show_default=False)] = None
    """Allowed difference of the outputs, instead of the promises of the passes."""
    inputs: Names = ()
    """Inputs of the model: x.npy, feeds.npz or a folder; generated without any. Repeatable."""
    seed: int = 0
    """Seed of the generated inputs."""
    check: str | None = None
    """A command with exit code 0 for a correct model; {} is replaced by its file."""
    interactions: Annotated[bool, Flag] = False
    """Also find the other rewrites that the failure needs."""
    resume: str | None = None
    """A file that stores each result, to resume an interrupted search."""
    reproducer: str | None = None
    """A folder for a bundle that shows the failure; `tiered replay` runs it."""
    json: Annotated[bool, Flag] = False
    """Print one JSON object instead of text."""


def run_bisect(source: str, options: BisectOptions) -> None:
    """Print the first wrong rewrite of the passes.

    Raises:
        VerificationError: there is one.
        RuntimeFailure: the model itself does not run.
        UsageError: a wrong name or option.
    """
    if options.opt_level not in LEVELS:
        raise UsageError(f"-O takes 0 to {max(LEVELS)}, not {options.opt_level}")
    required = split_required(options.require)
    settings: dict[str, Any] = {
        "opt_level": options.opt_level,
        "required": required.names,
        "disabled": split_names(options.disable, "--disable"),
        "backend": options.backend,
        "config": config_of(options.set),
    }
    parse_shapes(options.input_shape), parse_dims(options.dim)
    check_input(source)
    from tiered.extensions.debug import Bisection, Subject
    from tiered.extensions.debug.resume_file import ResumeFile
    from tiered.extensions.debug.runs import shaped
    from tiered.verify.custom_ops import using

    given = options.input_shape, options.dim
    shapes = shapes_of_inputs(load_model(source), *given) if any(given) else {}
    model, home = shaped(source, shapes)
    subject = Subject(model, options.passes, settings, home, (*options.edit, *required.edits))
    folder = None
    with using(subject.context().backend):
        oracle = _oracle(subject, options)
        memory = ResumeFile.of(options.resume, subject, oracle)
        blame = Bisection(subject, oracle, memory, _say).blame(interactions=options.interactions)
        if blame is not None and options.reproducer is not None:
            folder = _write(subject, options, blame, oracle)
    if options.json:
        print_json(_record(blame, folder))
    elif blame is None:
        results().print("no wrong rewrite found")
    else:
        for line in blame.lines():
            results().print(printable(line), soft_wrap=True)
        if folder is not None:
            command = with_loads(f"tiered replay {printable(folder)}", options.load)
            results().print(f"  reproduce  {command}", soft_wrap=True)
    if blame is not None and blame.kind == "cannot run":
        raise VerificationError(
            f"{source}: the result of {blame.pass_name} cannot run, so it is not verified"
        )
    if blame is not None:
        raise VerificationError(f"{source}: {blame.pass_name} is wrong")


def _oracle(subject: Subject, options: BisectOptions) -> Oracle:
    from tiered.extensions.debug import CommandOracle, OutputOracle
    from tiered.runtime import Numerics

    if options.check is not None:
        return CommandOracle(options.check)
    numerics = None if options.numerics is None else Numerics(options.numerics)
    limits = subject.context().backend.verification
    return OutputOracle(
        subject.source, options.inputs, options.seed, numerics, subject.folder, limits
    )


def _say(text: str) -> None:
    notes().print(f"tiered: {printable(text)}", soft_wrap=True)


def _write(subject: Subject, options: BisectOptions, blame: Blame, oracle: Oracle) -> str:
    from tiered.extensions.debug import reproduce
    from tiered.extensions.debug.reproducers import sample_of

    assert options.reproducer is not None
    _say("extracting the part of the model that fails")
    feeds = sample_of(oracle, subject, options.seed)
    return reproduce(subject, blame, feeds).save(options.reproducer)


def _record(blame: Blame | None, folder: str | None) -> dict[str, Any]:
    if blame is None:
        return {"wrong": False}
    return {
        "wrong": True,
        "kind": blame.kind,
        "pass": blame.pass_text,
        "rewrite": blame.number,
        "rewrites": blame.rewrites,
        "law": blame.law,
        "node": blame.anchor,
        "symptom": blame.symptom,
        "before": list(blame.before),
        "after": list(blame.after),
        "needs": list(blame.needs),
        "runs": blame.runs,
        "reproducer": folder,
    }


def run_replay(folder: str) -> None:
    """Run the bundle of a folder, and print whether it still fails.

    Raises:
        VerificationError: it does; or a process is lost again.
        ModelError: the folder holds no bundle.
        UsageError: the pass of the bundle is not known, and the bundle has no result of it.
    """
    from tiered.extensions.debug import load_bundle, replay
    from tiered.extensions.debug.bundle import replayed_error
    from tiered.extensions.fleet.crash_bundle import is_crash_bundle

    if is_crash_bundle(folder):
        _replay_crash(folder)
        return
    bundle = load_bundle(folder)
    try:
        found = replay(bundle)
    except PassNotFoundError as error:
        where = bundle.failure.pass_source
        raise UsageError(
            f"{error}; {where or 'a file'} defined it: load it with --load FILE"
        ) from error
    if found.fails:
        raise replayed_error(found, bundle, os.path.normpath(folder))
    results().print(printable(f"{folder}: {found.symptom}"), soft_wrap=True)


def _replay_crash(folder: str) -> None:
    """Run the command on which a process of a batch was lost.

    Raises:
        VerificationError: the process is lost again.
    """
    from tiered.extensions.fleet.crash_bundle import CrashBundle

    bundle = CrashBundle.load(folder)
    found = bundle.replay(folder)
    if found.is_lost:
        raise VerificationError(
            f"{printable(folder)}: {found.symptom} (in the batch: {bundle.status})"
        )
    results().print(printable(f"{folder}: {found.symptom}"), soft_wrap=True)
