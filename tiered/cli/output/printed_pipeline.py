"""`tiered optimize --print-pipeline`: which passes would run, and why the others would not.

With `--json`: {"pipeline": text, "digest", "backend", "edits": [{edit, by, why}], "diff": lines,
"passes": [{pass, groups, runs, reason}]}; edits and diff are against the default pipeline, or
against that of --passes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tiered.cli.output.terminal import print_json, printable, results
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from tiered.cli.prepared import PreparedRun
    from tiered.pipeline import Pipeline, PipelineStep
    from tiered.targets.pipeline_edits import PipelineEdit


def print_plan(prepared: PreparedRun) -> None:
    """Print the plan of a run.

    Raises:
        UsageError: a wrong name in an option.
    """
    passes, ctx = prepared.passes, prepared.context()
    from tiered.passes.interface.pass_info import Place
    from tiered.pipeline import default_pipeline, edited, pipeline_diff
    from tiered.pipeline.edits import USER
    from tiered.pipeline.optimize import pipeline_of, shaped
    from tiered.targets.pipeline_edits import edits_of

    base: Pipeline = default_pipeline() if passes is None else pipeline_of(passes)
    made = (*(ctx.backend.edits if passes is None else ()), *edits_of(prepared.edits, USER))
    pipeline = shaped(edited(base, made), prepared.shapes, prepared.dims)
    steps = pipeline.plan(ctx, Place(asked=passes is not None))
    if prepared.options.json:
        text = {
            "pipeline": str(pipeline),
            "digest": pipeline.digest,
            "backend": ctx.backend.name,
            "edits": [described_edit(edit) for edit in made],
            "diff": pipeline_diff(base, pipeline),
            "passes": [_described(step) for step in steps],
        }
        print_json(text)
        return
    _print_steps(steps)
    print_edits(made)
    console = results()
    console.print()
    console.print(printable(f"--passes '{pipeline}'"), soft_wrap=True)


def _print_steps(steps: list[PipelineStep]) -> None:
    console = results()
    running = sum(bool(step.decision) for step in steps)
    console.print(f"{running} of {counted(len(steps), 'pass', 'passes')} would run", soft_wrap=True)
    width = max((len(str(step.pass_)) for step in steps), default=0)
    for step in steps:
        said = "runs " if step.decision else "skips"
        line = f"  {said}  {step.pass_!s:<{width}}  {step.decision.reason}"
        console.print(printable(line), soft_wrap=True)


def print_edits(edits: Iterable[PipelineEdit]) -> None:
    """Print the edits of a pipeline in order, each with its author and reason."""
    console = results()
    for at, edit in enumerate(edits):
        if at == 0:
            console.print("\nedits of the pipeline, in this order:")
        why = f"  # {edit.why}" if edit.why else ""
        console.print(printable(f"  {edit.by}: {edit}{why}"), soft_wrap=True)


def described_edit(edit: PipelineEdit) -> dict[str, str]:
    """Return an edit as plain data."""
    return {"edit": str(edit), "by": edit.by, "why": edit.why}


def _described(step: PipelineStep) -> dict[str, Any]:
    return {
        "pass": str(step.pass_),
        "groups": list(step.place.groups),
        "runs": step.decision.run,
        "reason": step.decision.reason,
    }
