"""`tiered explain MODEL PASS`: why a pass fires or does not, node by node.

`--json` prints an array of objects, one for each node that the pass could rewrite: node, op_type,
verdict ("fires", "declined", "no match"), reason, matched (what of the pattern matched before).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console

from tiered.cli.files import load_model
from tiered.cli.terminal import Progress, print_json, printable, results
from tiered.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from tiered.graph import Model
    from tiered.passes import Pass, RewritePass
    from tiered.rewrite.explain import Explanation
    from tiered.rewrite.matcher import Match
    from tiered.rewrite.skip import Skip

FEW = 20
"""Nodes that are listed without -v."""


def run_explain(
    file: str, name: str, *, node: str | None, after: str, as_json: bool, verbose: bool
) -> None:
    """Print what a pass makes of the nodes of a model.

    Raises:
        UsageError: it is a pipeline, or no such node is there.
    """
    from tiered.pipeline import parse_pipeline

    pass_, before = _one_pass(name), parse_pipeline(after)
    with Progress() as progress:
        progress.say(f"reading {printable(file)}")
        model = load_model(file)
        progress.say(f"running {after or pass_.name}")
        if after:
            before.apply(model)
        found = _explanations(pass_, model)
    if node is not None:
        found = _only(found, node, model, pass_)
    if as_json:
        print_json([asdict(entry) for entry in found])
    else:
        _print(results(), pass_, found, everything=verbose or node is not None)


def _one_pass(name: str) -> Pass:
    from tiered.pipeline import parse_pipeline

    passes = list(parse_pipeline(name))
    if len(passes) != 1 or passes[0].info.kind == "pipeline":
        raise UsageError(f"explain takes one pass, not {name!r}")
    return passes[0]


def _explanations(pass_: Pass, model: Model) -> list[Explanation]:
    from tiered.passes import RewritePass
    from tiered.registry import registry

    for needed in registry.dependencies(pass_.info):
        needed.apply(model)
    return _by_rule(pass_, model) if isinstance(pass_, RewritePass) else _by_run(pass_, model)


def _by_rule(pass_: RewritePass, model: Model) -> list[Explanation]:
    from tiered.passes.scoped import OUTSIDE
    from tiered.rewrite.explain import explain_rule

    scope = pass_.scope

    def accept(match: Match) -> Skip | None:
        inside = scope is None or all(map(scope.holds, match.nodes))
        return None if inside else OUTSIDE

    return explain_rule(pass_.rule, model, pass_.options, accept)


def _by_run(pass_: Pass, model: Model) -> list[Explanation]:
    """Explain a pass that has no pattern by what it says while it runs."""
    from tiered.context import PassContext
    from tiered.rewrite.explain import Explanation

    operators = {node.label: node.op_type for graph in model.graphs() for node in graph.nodes}
    context = PassContext.isolated()
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


def _only(
    found: Sequence[Explanation], name: str, model: Model, pass_: Pass
) -> list[Explanation]:
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
    for entry in found if everything else found[:FEW]:
        reason = f": {entry.reason}" if entry.reason else ""
        line = f"  {entry.op_type} {entry.node!r} {entry.verdict}{reason}"
        console.print(printable(line), soft_wrap=True)
        for matched in entry.matched if everything else ():
            console.print(printable(f"    matched {matched}"), soft_wrap=True)
    if not everything and len(found) > FEW:
        console.print(f"  and {len(found) - FEW:,} more (-v lists them)")
