"""Prove that two models compute the same; exit code 4 if that is not proved, 3 if it is wrong.

Examples:
    tiered certify before.onnx after.onnx
    tiered certify before.onnx after.onnx --with certificate.json

With `--json`, one object:
    before, after: the files.
    rewrites: with `--with`, and instead of what follows: [{numbers, pass, proved, sizes,
        all_sizes, axioms, bound, reason}], one for each rewrite, or for some that are one step.
    proved: whether all outputs are proved equal, for all values of the inputs at the sizes named.
    domain: "bits", or "reals" if a region was proved over the reals only.
    common: how many values of the second model have the structure of one of the first.
    differs_if_empty: values that differ where dims are 0, and are equal otherwise.
    bound: the largest distance of a computed constant from the exact one, in ulps.
    regions: [{name, proved: "bits", "reals", "run", "refuted" or "unproved", sizes, all_sizes,
        axioms, bound, reason}], one for each value that differs in structure and was proved, and
        each output left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.bounded import MemoryBound
from tiered.cli.certificates import check_again
from tiered.cli.files import check_input, load_model
from tiered.cli.line.declaration import Flags
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import AsJson
from tiered.support.amounts import counted
from tiered.support.errors import TargetError, VerificationError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.certify.regions.sweep import SweepStep, Swept
    from tiered.graph import Model


class CertifyOptions(Record):
    """The options of `tiered certify`."""

    with_: Annotated[str | None, Flags("--with")] = None
    """A certificate of --certify=FILE.json: its rewrites must lead from A to B; each is checked."""


def certify(
    first: Annotated[str, Flags("A")],
    second: Annotated[str, Flags("B")],
    /,
    *,
    options: CertifyOptions,
    bound: MemoryBound,
    as_json: AsJson = False,
) -> None:
    """Prove that the models of two files compute the same, and print what was proved.

    Args:
        first: The ONNX file before.
        second: The ONNX file after, made by any tool.

    Raises:
        VerificationError: a region was run, and differs; or the certificate is of other models.
        TargetError: an output, or a rewrite of the certificate, is not proved.
        ModelError: a file cannot be read.
    """
    check_input(first)
    check_input(second)
    if options.with_ is not None:
        check_again(options.with_, first, second, as_json=as_json)
        return
    with Progress() as progress:
        progress.say(f"reading {printable(first)} and {printable(second)}")
        from tiered.certify.evaluation.values import Unproved
        from tiered.certify.regions.sweep import Sweep

        models = load_model(first), load_model(second)
        progress.say("proving")
        try:
            found = Sweep(*models).run()
        except Unproved as error:
            raise TargetError(f"not certified: {error}") from error
        left = _judged(models, found.left)
    if as_json:
        print_json(_record(first, second, found, left))
    else:
        for line in _said(found, left):
            results().print(printable(line), soft_wrap=True)
    refuted = [reason for _, word, reason in left if word == "refuted"]
    if refuted:
        raise VerificationError(f"{printable(second)} computes something else: {refuted[0]}")
    unproved = [reason for _, word, reason in left if word == "unproved"]
    if unproved:
        raise TargetError(f"not certified: {printable(unproved[0])}")


def _judged(
    models: tuple[Model, Model], steps: Sequence[SweepStep]
) -> list[tuple[SweepStep, str, str]]:
    """Return what runs show of outputs that are not proved.

    A part that differs for some values before it refutes the whole only if the whole differs in a
    run too: the values may be none that the model has there.
    """
    left = [(step, *_ran(step)) for step in steps]
    if all(word != "refuted" for _, word, _ in left):
        return left
    whole = _difference(*models)
    if whole:
        return [(step, word, whole if word == "refuted" else text) for step, word, text in left]
    here = "in a part, for values that no run of the whole model had there"
    return [
        (step, "unproved", f"{text}, {here}") if word == "refuted" else (step, word, text)
        for step, word, text in left
    ]


def _difference(before: Model, after: Model) -> str:
    """Return how whole models differ in a run; "" if they do not, or do not run."""
    from tiered.certify.evaluation.values import Unproved
    from tiered.certify.regions.whole import whole_problem
    from tiered.certify.trial_runs import run_both
    from tiered.support.numerics import Numerics, Promise

    try:
        ran = run_both(whole_problem(before, after), Promise(Numerics.REASSOCIATING))
    except Unproved:
        return ""
    return "" if ran.ok else str(ran.comparison).replace("result ", "")


def _ran(step: SweepStep) -> tuple[str, str]:
    """Return what a run shows of an output that is not proved, and why it is not."""
    from tiered.certify.evaluation.values import Unproved
    from tiered.certify.trial_runs import run_both
    from tiered.support.numerics import Numerics, Promise

    if step.problem is None:
        return "unproved", step.proof.reason
    try:
        ran = run_both(step.problem, Promise(Numerics.REASSOCIATING))
    except Unproved as error:
        return "unproved", f"{step.name}: {step.proof.reason}; {error}"
    if ran.ok:
        return "run", step.proof.reason
    return "refuted", str(ran.comparison).replace("result result", step.name)


def _said(found: Swept, left: list[tuple[SweepStep, str, str]]) -> list[str]:
    counts = Counter(str(step.proof.domain) for step in found.steps if step.proof.is_proved)
    words = {"bits": "bit for bit", "reals": "over the reals"}
    how = ", ".join(f"{counts[word]:,} {words[word]}" for word in words if counts[word])
    lines = [
        f"{counted(found.common, 'value')} of the same structure; "
        f"{counted(sum(counts.values()), 'region')} proved{f': {how}' if how else ''}"
    ]
    lines += [f"  {step.name}: {word}: {reason}" for step, word, reason in left]
    bound = max((step.proof.bound for step in found.steps), default=0.0)
    within = f", constants within {bound:.2g} ulps" if bound else ""
    runtime = sorted({a for step in found.steps for a in step.proof.axioms} & _runtime_axioms())
    if runtime:
        lines.append(f"axioms of the runtime: {', '.join(runtime)}")
    named = [step.proof for step in found.steps if step.proof.has_named_sizes]
    if named:
        for_all = sum(proof.is_for_all for proof in named)
        lines.append(f"{for_all:,} of {counted(len(named), 'region')} of named sizes for all sizes")
    if found.empty:
        lines.append(
            f"not where dims are 0: {counted(len(found.empty), 'value')} of empty tensors "
            f"{'differ' if len(found.empty) > 1 else 'differs'}, as {found.empty[0]}"
        )
    if not left:
        lines.append(f"certified: the outputs are the same {words[found.domain]}{within}")
    return lines


def _runtime_axioms() -> set[str]:
    from tiered.certify.axioms import RUNTIME

    return {*RUNTIME}


def _record(
    first: str, second: str, found: Swept, left: list[tuple[SweepStep, str, str]]
) -> dict[str, Any]:
    runs = {step.name: (word, reason) for step, word, reason in left}
    return {
        "before": first,
        "after": second,
        "proved": not left,
        "domain": found.domain,
        "common": found.common,
        "bound": max((step.proof.bound for step in found.steps), default=0.0),
        "differs_if_empty": [*found.empty],
        "regions": [
            {
                "name": step.name,
                "proved": runs[step.name][0] if step.name in runs else step.proof.domain,
                "sizes": [dict(sizes) for sizes in step.proof.sizes],
                "all_sizes": step.proof.is_for_all,
                "axioms": sorted(step.proof.axioms),
                "bound": step.proof.bound,
                "reason": runs[step.name][1] if step.name in runs else "",
            }
            for step in found.steps
        ],
    }
