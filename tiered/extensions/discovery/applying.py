"""Apply what was found in a model, once for this model, and prove the whole."""

from __future__ import annotations

from collections.abc import Mapping

from tiered.certify.evaluation.values import Unproved
from tiered.certify.regions.sweep import Sweep
from tiered.extensions.discovery.expressions import GrammarExpr, outputs_of
from tiered.extensions.discovery.mining import Finding, MinedSubgraph, border_values
from tiered.graph import Graph, Model, Value
from tiered.passes import module_pass
from tiered.support.errors import TargetError

_LAW = "a subgraph => a cheaper one that computes the same"


def apply_findings(model: Model, findings: list[Finding]) -> int:
    """Replace the subgraphs of findings in a model; return how many.

    Raises:
        TargetError: the result is not proved to compute the same.
    """
    before = Model.from_proto(model.to_proto())
    applied = 0

    @module_pass(opt_level=None, numerics="reassociating")
    def discovered(model: Model, ctx: object) -> None:
        """Replace subgraphs by those that were found."""
        nonlocal applied
        for finding in findings:
            for cut in finding.places:
                if all(node.graph is model.main for node in cut.nodes):
                    with model.main.rewrite(_LAW, cut.root):
                        _replace(model.main, cut, finding)
                    applied += 1

    discovered(model)
    check_same(before, model)
    return applied


def check_same(before: Model, after: Model) -> None:
    """Prove that two models compute the same.

    Raises:
        TargetError: an output is not proved.
    """
    try:
        left = Sweep(before, after).run().left
    except Unproved as error:
        raise TargetError(f"what was found is not certified: {error}") from error
    if left:
        reason = left[0].proof.reason
        raise TargetError(f"what was found is not certified: {left[0].name}: {reason}")


def _replace(graph: Graph, cut: MinedSubgraph, finding: Finding) -> None:
    """Build the cheaper graph in the place of a subgraph."""
    made = border_values(finding.source, cut)
    for each in finding.target.walk():
        if each.number in made:
            continue
        if each.array is not None:
            made[each.number] = graph.constant(each.array)
        elif each.is_operator:
            made[each.number] = _added(graph, each, made)
    graph.replace(cut.root, [made[finding.target.number]])


def _added(graph: Graph, expr: GrammarExpr, made: Mapping[int, Value]) -> Value:
    """Return the result of a node that is added for an operator."""
    operands = [None if x is None else made[x.number] for x in expr.operands]
    attributes = {
        name: list(value) if isinstance(value, tuple) else value for name, value in expr.attributes
    }
    node = graph.add_node(expr.op, operands, outputs_of(expr), attributes, domain=expr.domain)
    result = node.outputs[expr.output]
    assert result is not None
    return result
