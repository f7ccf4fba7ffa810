"""Parts of a preparation as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiered.extensions.preparation.done_step import DoneStep
    from tiered.passes.interface.report import Remark
    from tiered.pipeline.result import Statistics
    from tiered.targets import Coverage


def statistics_record(found: Statistics) -> dict[str, Any]:
    """Return the contents of a model as plain data."""
    return {
        "nodes": found.nodes,
        "operators": found.operators,
        "parameters": found.parameters,
        "bytes": found.nbytes,
    }


def step_record(each: DoneStep) -> dict[str, Any]:
    """Return a step as plain data."""
    return {
        "name": each.step.name,
        "what": each.step.what,
        "passes": each.step.text,
        "opt_level": each.step.opt_level,
        "backend": None if each.step.backend is None else str(each.step.backend),
        "changed": each.changed,
        "nodes": each.after.nodes,
        "bytes": each.after.nbytes,
        "taken": each.taken,
        "refused": each.refused,
        "verdict": each.verdict,
        "promise": str(each.promise),
        "largest_difference": each.largest,
        "found": each.found,
        "seconds": each.seconds,
    }


def remark_record(remark: Remark) -> dict[str, Any]:
    """Return a remark as plain data."""
    return {
        "pass": remark.pass_name,
        "reason": remark.reason,
        "count": remark.count,
        "op_type": remark.op_type,
        "nodes": list(remark.nodes),
    }


def coverage_record(coverage: Coverage) -> dict[str, Any]:
    """Return what a target takes, and why not the rest, as plain data."""
    return {
        "nodes": coverage.nodes,
        "taken": coverage.nodes - coverage.refused.total(),
        "model": [str(refusal) for refusal in coverage.model],
        "gaps": [
            {
                "operator": gap.operator,
                "reasons": list(gap.reasons),
                "count": len(gap.nodes),
                "nodes": [node.label for node in gap.nodes],
            }
            for gap in coverage.gaps
        ],
    }
