"""The summary of `tiered optimize`, for people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from tiered.cli.output.record import fused_operators, peak_memory
from tiered.cli.output.tables import Cell, change, print_table, seconds, size
from tiered.cli.output.terminal import printable
from tiered.pipeline.interface import interface_changes
from tiered.pipeline.leftovers import fixing_hint, fixing_options, leftovers
from tiered.support.amounts import counted
from tiered.support.numerics import Numerics, loosest

if TYPE_CHECKING:
    from tiered.cli.outcome import Outcome
    from tiered.graph.io.save import PlacedWeights
    from tiered.passes.interface.pass_info import PassResult
    from tiered.passes.interface.report import Remark
    from tiered.pipeline.result import ModelStatistics, OptimizeResult

FEW_PASSES = 5
"""Rows of the table of times without -v."""

FEW_DIMS = 2
"""Dynamic dims in the summary that keep shape operators."""

ALWAYS_PRINTED = frozenset({"failed", "deprecated", "unmet", "hook", "check", "verify"})
"""Kinds of remarks that are printed without -v, on stderr."""
_BY = {
    "model": "by runs of the model",
    "region": "by runs of what they changed",
    "sameness": "that changed nothing that is computed",
    "nothing": "not verified",
}


def print_summary(console: Console, outcome: Outcome, result: OptimizeResult) -> None:
    """Print what changed, how long each pass took, and whether the result was verified."""
    options = outcome.prepared.options
    console.print(_headline(outcome, result), soft_wrap=True)
    print_change(console, result.before, result.after)
    if changes := interface_changes(result.model):
        console.print("interface changed:")
        for text in changes:
            console.print(printable(f"  {text}"), soft_wrap=True)
    if not options.verbose:
        for remark in _of_lossy_passes(result):
            console.print(printable(remark), soft_wrap=True)
    if fused := fused_operators(result):
        counts = ", ".join(f"{printable(name)} {count:,}" for name, count in fused.items())
        console.print(f"fused: {counts}", soft_wrap=True)
    _print_times(console, result, everything=options.verbose)
    console.print()
    console.print(_verified(result), soft_wrap=True)
    if result.certify is not None:
        for line in _certified(result, everything=options.verbose):
            console.print(printable(line), soft_wrap=True)
    if overridable := result.model.overridable:
        console.print(overridable_note(len(overridable)), soft_wrap=True)
    left = leftovers(result.model)
    for leftover in left[:FEW_DIMS]:
        console.print(printable(leftover), soft_wrap=True)
    if len(left) > 1:
        hint = fixing_hint(fixing_options(result.model), whole=options.verbose)
        console.print(printable(hint), soft_wrap=True)
    if peak := peak_memory():
        console.print(f"peak memory: {size(peak)}")
    if options.verbose:
        for sample in result.verify.samples if result.verify is not None else ():
            for line in str(sample).splitlines():
                console.print(printable(line), soft_wrap=True)
        for way in result.verify.ways if result.verify is not None else ():
            console.print(printable(f"verified {way}"), soft_wrap=True)
        for remark in result.remarks:
            if remark.kind not in ALWAYS_PRINTED:
                console.print(printable(remark), soft_wrap=True)


def _of_lossy_passes(result: OptimizeResult) -> Iterator[Remark]:
    """Yield the remarks of passes that reduce accuracy: their changes, and the nodes they skip.

    Those of analyses, too: no level runs them. Of other passes that no level runs: what they found.
    """
    names = {
        done.name
        for done in result.report.results
        if done.info.numerics is Numerics.LOSSY or done.info.analysis
    }
    asked = {done.name for done in result.report.results if done.info.opt_level is None}
    for remark in result.remarks:
        shown = names if remark.kind == "missed" else names | asked
        if remark.pass_name in shown and remark.kind in ("analysis", "missed"):
            yield remark


def warnings_of(result: OptimizeResult) -> list[str]:
    """Return the notes on the model and the remarks that are printed without --remarks."""
    remarks: list[Remark] = [r for r in result.remarks if r.kind in ALWAYS_PRINTED]
    return [*result.model.notes, *map(str, remarks)]


def complaint_note(complaint: str) -> str:
    """Return the line about a model that onnx.checker rejects."""
    return printable(f"onnx.checker rejects the model: {complaint}")


def overridable_note(count: int) -> str:
    """Return the note on initializers that are also graph inputs."""
    are, them = "initializers are also graph inputs", "them"
    if count == 1:
        are, them = "initializer is also a graph input", "it"
    return (
        f"{count:,} {are}, so overridable and not constant; "
        f"`--require remove_initializer_from_input` frees {them}"
    )


def sharing_notes(placed: PlacedWeights, target: str, suffix: str) -> Iterator[str]:
    """Yield notes on the weights that `--share-weights` could not share.

    Args:
        placed: where they are now.
        target: the file of the model.
        suffix: that of the file of weights.
    """
    data = f"{os.path.basename(target)}{suffix}"
    if placed.copied[0]:
        folder = os.path.dirname(target) or "."
        yield (
            f"--share-weights: {_count(placed.copied)} copied to {data}, as {folder} is not the "
            "folder of the model that was read"
        )
    if placed.made[0]:
        yield f"--share-weights: {_count(placed.made)} that passes made written to {data}"
    if not (placed.shared[0] or placed.copied[0] or placed.made[0]):
        yield "--share-weights: the model has no external weights; nothing is shared"


def _count(placed: tuple[int, int]) -> str:
    count, nbytes = placed
    return f"{counted(count, 'tensor')} ({size(nbytes)})"


def _headline(outcome: Outcome, result: OptimizeResult) -> str:
    source, target = printable(outcome.source), outcome.target
    goal = printable(target) if target is not None else "nothing written"
    prepared = outcome.prepared
    level = f"-O{prepared.options.opt_level}"
    run = outcome.what or (f"--passes at {level}" if prepared.passes else level)
    return f"{source} -> {goal}  ({run}, {seconds(result.seconds)})"


def print_change(console: Console, before: ModelStatistics, after: ModelStatistics) -> None:
    """Print a table of the operators whose numbers changed, and of nodes, parameters and bytes."""
    rows: list[tuple[Cell, ...]] = []
    for name in {**before.operators, **after.operators}:
        old, new = before.operators.get(name, 0), after.operators.get(name, 0)
        if old != new:
            rows.append((name, old, new, change(old, new)))
    totals: list[tuple[Cell, ...]] = [
        ("nodes", before.nodes, after.nodes, change(before.nodes, after.nodes)),
        (
            "parameters",
            before.parameters,
            after.parameters,
            change(before.parameters, after.parameters),
        ),
        ("bytes", before.nbytes, after.nbytes, change(before.nbytes, after.nbytes)),
    ]
    headers = ("operator", "before", "after", "change")
    print_table(console, "What changed", headers, rows, totals)


@dataclass
class _Time:
    """The time of one pass over all its runs."""

    name: str
    runs: int = 0
    rewrites: int = 0
    seconds: float = 0.0

    def add(self, result: PassResult) -> None:
        self.runs += 1
        self.rewrites += result.rewrites
        self.seconds += result.seconds


def _print_times(console: Console, result: OptimizeResult, *, everything: bool) -> None:
    times = sorted(_times(result), key=lambda time: -time.seconds)
    rows = [(time.name, time.runs, time.rewrites, seconds(time.seconds)) for time in times]
    shown = rows if everything else rows[:FEW_PASSES]
    title = f"Where the time went ({counted(len(rows), 'pass', 'passes')})"
    print_table(console, title, ("pass", "runs", "rewrites", "time"), shown)
    if len(rows) > len(shown):
        rest = sum(time.seconds for time in times[len(shown) :])
        console.print(f"  and {len(rows) - len(shown)} more, {seconds(rest)} (-v lists them)")


def _times(result: OptimizeResult) -> Iterator[_Time]:
    times: dict[str, _Time] = {}
    for ran in result.report.ran():
        times.setdefault(ran.name, _Time(ran.name)).add(ran)
    return iter(times.values())


def _certified(result: OptimizeResult, *, everything: bool) -> Iterator[str]:
    """Yield how many rewrites were proved in which way, and those that were not."""
    assert result.certify is not None
    findings = result.certify.findings
    left = findings.left()
    names = f" (-v names {'them' if len(left) > 1 else 'it'})" if left and not everything else ""
    yield f"certified: {findings}{names}"
    for each in findings.rewrites if everything else ():
        if not each.is_proved or (each.proof is not None and each.proof.bound):
            yield f"  {each}"
    for each in left if not everything else ():
        if each.word == "refuted":
            yield f"  {each}"


def _verified(result: OptimizeResult) -> str:
    verify = result.verify
    if verify is None:
        return "verified: no (--verify runs model and result on onnxruntime)"
    verdict = verify.verdict
    if verdict.word == "structure only":
        return f"verified: {verdict} (--verify runs the model after each pass)"
    if verdict.word not in ("yes", "in part"):
        return f"verified: {printable(verdict)}"
    promised = loosest([info.promise for info in result.report.changing()]).numerics
    counts = Counter(way.by for way in verify.ways)
    each = verify.how != "final"
    said = "; ".join(
        f"{counted(count, 'pass', 'passes') if each else 'all passes'} {_BY[by]}"
        for by, count in counts.items()
    )
    asked = sum(way.judge == "onnx.reference" for way in verify.ways)
    said += f", {asked:,} of them on onnx.reference too, for narrow floats" if asked else ""
    within = f" within {'; '.join(verify.limits)}" if verify.limits else ""
    sets = counted(len(verify.comparisons), "set of inputs", "sets of inputs")
    left = f"; {printable(verdict.why)}" if verdict.why and verdict.word == "yes" else ""
    return (
        f"verified: {verdict.word} ({promised}; {said}; {sets}, largest difference "
        f"{verify.largest:.1e}{within}{left})"
    )
