"""Find the first rewrite of the passes that makes a model wrong; exit code 3 if there is one.

Examples:
    tiered bisect in.onnx -O3 --reproducer bug

With `--json`, `bisect` prints one object: wrong (whether anything is), and if so kind, pass,
rewrite, rewrites, law, node, symptom, before, after, needs, runs, reproducer (the folder or null).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tiered.cli.commands.verify import NumericClass
from tiered.cli.effects import Effect
from tiered.cli.files import check_input, load_model
from tiered.cli.load_passes import with_loads
from tiered.cli.output.terminal import print_json, printable, results, say
from tiered.cli.prepared import PreparedRun
from tiered.cli.shapes import shapes_of_inputs
from tiered.cli.shared_options import (
    Json,
    ModelFile,
    Names,
    OptimizeOptions,
    PassSelection,
    Sampled,
)
from tiered.cli.watch import WatchOptions
from tiered.support.errors import VerificationError

if TYPE_CHECKING:
    from tiered.extensions.debug import Blame, Oracle, Subject


_SETTINGS: Final = ("required", "disabled", "backend", "config")
"""Those of the context, beside the level, that a search has."""


class BisectOptions(Sampled, PassSelection):
    """The options of `tiered bisect`."""

    set: Names = ()
    """As for `tiered optimize`: a config option, NAME=VALUE."""
    numerics: NumericClass | None = None
    """Allowed difference of the outputs, instead of the promises of the passes."""
    check: str | None = None
    """A command with exit code 0 for a correct model; {} is replaced by its file."""
    interactions: bool = False
    """Also find the other rewrites that the failure needs."""
    resume: str | None = None
    """A file that stores each result, to resume an interrupted search."""
    reproducer: str | None = None
    """A folder for a bundle that shows the failure; `tiered replay` runs it."""
    json: Json = False

    EFFECTS = (
        *Sampled.EFFECTS,
        Effect(
            ("inputs", "numerics"),
            "outputs that are compared, without --check",
            lambda of: of("check") is None,
        ),
        Effect(
            ("seed",),
            "outputs that are compared, without --check, or --reproducer",
            lambda of: of("check") is None or of("reproducer") is not None,
        ),
    )


def bisect(source: ModelFile, /, *, options: BisectOptions) -> None:
    """Print the first wrong rewrite of the passes.

    Raises:
        VerificationError: there is one.
        RuntimeFailure: the model itself does not run.
        UsageError: a wrong name or option.
    """
    selected = {name: getattr(options, name) for name in PassSelection.fields()}
    prepared = PreparedRun.of(OptimizeOptions(**selected), WatchOptions(set=options.set))
    settings: dict[str, Any] = {"opt_level": options.opt_level}
    settings |= {name: prepared.settings[name] for name in _SETTINGS}
    check_input(source)
    from tiered.extensions.debug import Bisection, Subject
    from tiered.extensions.debug.pipeline_runs import shaped
    from tiered.extensions.debug.resume_file import ResumeFile
    from tiered.verify.custom_ops import using

    given = options.input_shape, options.dim
    shapes = shapes_of_inputs(load_model(source), *given) if any(given) else {}
    model, home = shaped(source, shapes)
    subject = Subject(model, options.passes, settings, home, prepared.edits)
    folder = None
    with using(subject.context().backend):
        oracle = _oracle(subject, options)
        memory = ResumeFile.of(options.resume, subject, oracle)
        blame = Bisection(subject, oracle, memory, say).blame(interactions=options.interactions)
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


def _write(subject: Subject, options: BisectOptions, blame: Blame, oracle: Oracle) -> str:
    from tiered.extensions.debug import reproduce
    from tiered.extensions.debug.reproducers import sample_of

    assert options.reproducer is not None
    say("extracting the part of the model that fails")
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
