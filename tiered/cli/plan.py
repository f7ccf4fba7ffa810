"""`tiered optimize --print-pipeline`: which passes would run, and why not the rest.

With `--json`: {"pipeline": text, "digest", "passes": [{pass, groups, runs, reason}]}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiered.cli.terminal import print_json, printable, results

if TYPE_CHECKING:
    from tiered.pipeline import Pipeline, Step


def print_plan(pipeline: Pipeline, settings: dict[str, Any], *, asked: bool, as_json: bool) -> None:
    """Print the plan of a pipeline in a context with the given settings.

    Args:
        pipeline: what would be run.
        settings: of `PassContext`.
        asked: whether it was listed by --passes, so that levels do not matter.
        as_json: print JSON instead of text.
    """
    from tiered.context import PassContext
    from tiered.control.decision import Place

    steps = pipeline.plan(PassContext(**settings), Place(asked=asked))
    if as_json:
        passes = [_described(step) for step in steps]
        text = {"pipeline": str(pipeline), "digest": pipeline.digest, "passes": passes}
        print_json(text)
        return
    console = results()
    running = sum(bool(step.decision) for step in steps)
    console.print(f"{running} of {len(steps)} passes would run", soft_wrap=True)
    width = max((len(str(step.pass_)) for step in steps), default=0)
    for step in steps:
        said = "runs " if step.decision else "skips"
        line = f"  {said}  {step.pass_!s:<{width}}  {step.decision.reason}"
        console.print(printable(line), soft_wrap=True)
    console.print()
    console.print(printable(f"--passes '{pipeline}'"), soft_wrap=True)


def _described(step: Step) -> dict[str, Any]:
    return {
        "pass": str(step.pass_),
        "groups": list(step.place.groups),
        "runs": step.decision.run,
        "reason": step.decision.reason,
    }
