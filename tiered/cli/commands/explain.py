"""Explain node by node why a pass fires or does not fire, without changing the model.

Examples:
    tiered explain in.onnx fuse_gelu
    tiered explain in.onnx fuse_gelu --after default --node /mlp/Mul

`--json` prints one object:
    pass, opt_level, backend; runs, reason: whether `tiered optimize` runs the pass, and why (not).
    nodes: one object for each node that the pass could rewrite: node, op_type,
        verdict ("fires", "declined", "no match"), reason, matched (the part that matched).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from tiered.cli.bounded import MemoryBound
from tiered.cli.files import run_first
from tiered.cli.line.candidates import complete_pass
from tiered.cli.line.declaration import Flags
from tiered.cli.load_passes import load_passes
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.pass_names import level_set
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import BackendName, Level, Load, ModelFile, ReadOptions
from tiered.support.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.graph import Model
    from tiered.passes import Pass, RewritePass
    from tiered.passes.interface.pass_info import Decision
    from tiered.rewriter.furthest_match import Explanation
    from tiered.rewriter.match import Match
    from tiered.rewriter.skip import Skip

FEW = 20
"""Nodes that are listed without -v."""
ABSENT = "it is not in the pipeline"
LONG = 240
"""Characters of a reason without -v."""


def explain(
    file: ModelFile,
    name: Annotated[str, Flags("PASS", completes=complete_pass)],
    /,
    *,
    node: str | None = None,
    after: str = "",
    load: Load = (),
    opt_level: Level = 2,
    backend: BackendName = None,
    options: ReadOptions,
    bound: MemoryBound,
) -> None:
    """Print the verdict of a pass on the nodes of a model, at a level and for a target.

    Args:
        name: A pass, optionally with options and scope: 'fold_constant{max_growth=0}'.
        node: Only this node, with the matched part before the first failed condition.
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        opt_level: The level, as for `tiered optimize`.
        backend: The target, as for optimize: a name or a TOML file; portable by default.

    Raises:
        UsageError: it is a pipeline, there is no such level, backend or node.
    """
    load_passes(load)
    from tiered.context import PassContext
    from tiered.pipeline import parse_pipeline

    context = PassContext.isolated(level_set(opt_level), backend=backend)
    pass_, before = _one_pass(name), parse_pipeline(after)
    decision = _decision(pass_, context)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        progress.say(f"running {after or pass_.name}")
        if after:
            run_first(before, model, PassContext.isolated(level_set(opt_level), backend=backend))
        found = _explanations(pass_, model, context)
    if node is not None:
        found = _only(found, node, model, pass_)
    if options.json:
        head = {"pass": str(pass_), "opt_level": opt_level, "backend": str(context.target)}
        verdict = {"runs": decision.run, "reason": decision.reason}
        print_json({**head, **verdict, "nodes": [asdict(entry) for entry in found]})
    else:
        _print(results(), pass_, found, everything=options.verbose or node is not None)
        _print_decision(pass_, decision, context)


def _one_pass(name: str) -> Pass:
    from tiered.pipeline import parse_pipeline

    passes = list(parse_pipeline(name))
    if len(passes) != 1 or passes[0].info.kind == "pipeline":
        raise UsageError(f"explain takes one pass, not {name!r}")
    return passes[0]


def _decision(pass_: Pass, context: PassContext) -> Decision:
    """Return whether `tiered optimize` runs a pass at this level for this target."""
    from tiered.passes.interface.pass_info import Decision
    from tiered.pipeline import pipeline_for

    steps = pipeline_for(context.backend).plan(context)
    decisions = [step.decision for step in steps if step.pass_.name == pass_.name]
    if not decisions:
        return Decision(False, f"{ABSENT} of {context.target}")
    return next((decision for decision in decisions if decision.run), decisions[0])


def _print_decision(pass_: Pass, decision: Decision, context: PassContext) -> None:
    if decision.run:
        return
    level = pass_.info.opt_level
    if decision.reason.startswith(ABSENT):
        advice = f" (--passes {pass_.name} runs it)"
    elif level is None:
        advice = f" (--require {pass_.name} runs it)"
    else:
        advice = f" (-O {level} runs it)" if level > context.opt_level else ""
    line = f"not run by `tiered optimize -O {context.opt_level}`: {decision.reason}{advice}"
    results().print(printable(line), soft_wrap=True)


def _explanations(pass_: Pass, model: Model, context: PassContext) -> list[Explanation]:
    from tiered.passes import RewritePass
    from tiered.passes.interface.registry import registry

    for needed in registry.dependencies(pass_.info):
        needed.apply(model)
    if isinstance(pass_, RewritePass):
        return _by_rule(pass_, model, context)
    return _by_run(pass_, model, context)


def _by_rule(pass_: RewritePass, model: Model, context: PassContext) -> list[Explanation]:
    from tiered.passes.scope_guard import OUTSIDE
    from tiered.rewriter.furthest_match import explain_rule

    scope = pass_.scope

    def accept(match: Match) -> Skip | None:
        inside = scope is None or all(map(scope.holds, match.nodes))
        return None if inside else OUTSIDE

    approve = pass_.approval(context)
    return explain_rule(pass_.rule, model, pass_.options, accept, approve)


def _by_run(pass_: Pass, model: Model, context: PassContext) -> list[Explanation]:
    """Explain a pass without a pattern by its remarks during a run."""
    from tiered.rewriter.furthest_match import Explanation

    operators = {node.label: node.op_type for graph in model.graphs() for node in graph.nodes}
    pass_.apply(model, context)
    (result,) = context.report.of(pass_.name)
    return [
        *(
            Explanation(note.label, operators.get(note.label, ""), "fires", "", (note.reason,))
            for note in result.applied
        ),
        *(
            Explanation(note.label, note.op_type, "declined", note.reason)
            for note in (*result.missed, *result.found)
        ),
    ]


def _only(found: Sequence[Explanation], name: str, model: Model, pass_: Pass) -> list[Explanation]:
    chosen = [entry for entry in found if entry.node == name]
    if chosen:
        return chosen
    nodes = {node.label: node.op_type for graph in model.graphs() for node in graph.nodes}
    if name not in nodes:
        raise UsageError(f"there is no node {name!r}{did_you_mean(name, nodes)}")
    kinds = ", ".join(dict.fromkeys(entry.op_type for entry in found if entry.op_type))
    looks = f"; it looks at {kinds}" if kinds else ""
    raise UsageError(f"{pass_.name} does not look at {nodes[name]} {name!r}{looks}")


def _print(
    console: Console, pass_: Pass, found: Sequence[Explanation], *, everything: bool
) -> None:
    counts = Counter(entry.verdict for entry in found)
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    console.print(f"{pass_}: {summary or 'no node that it could rewrite'}", soft_wrap=True)
    shown = found
    if not everything and len(found) > FEW:
        # The verdict of a guard is more useful than that of a different operator.
        shown = sorted(found, key=lambda entry: entry.verdict == "no match")[:FEW]
    for entry in shown:
        reason = f": {_short(entry.reason, everything=everything)}" if entry.reason else ""
        node = f"{entry.op_type} {entry.node!r}" if entry.node else "the model"
        line = f"  {node} {entry.verdict}{reason}"
        console.print(printable(line), soft_wrap=True)
        for matched in entry.matched if everything else ():
            console.print(printable(f"    matched {matched}"), soft_wrap=True)
    if not everything and len(found) > FEW:
        console.print(f"  and {len(found) - FEW:,} more (-v lists them)")


def _short(reason: str, *, everything: bool) -> str:
    return reason if everything or len(reason) <= LONG else f"{reason[:LONG]} ... (-v: in full)"
