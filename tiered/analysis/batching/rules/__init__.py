"""The rules by operator, under `@batch_rule("Operator")`.

An operator without one is followed by its axis map; one that has no map either cannot be followed.
"""

from typing import Final

from tiered.analysis.axes.rules import AXES
from tiered.analysis.batching.following import BATCHES as BATCHES, COUNTS as COUNTS, Rule
from tiered.analysis.batching.rules import (
    contrib_samples as contrib_samples,
    control_flow_samples as control_flow_samples,
    found_lists as found_lists,
    generic,
    images as images,
    indexed_samples as indexed_samples,
    recurrent_samples as recurrent_samples,
    reshape as reshape,
    sample_numbers,
    sample_parts as sample_parts,
    sample_sequences as sample_sequences,
    size_operands as size_operands,
)
from tiered.graph import Node
from tiered.graph.queries.op_traits import VIEWS

_KEEPING: Final = (*VIEWS, "Cast", "Expand", "Slice", "Transpose")
"""Operators that leave the distance of the numbers of neighbouring samples as it is."""

for _op_type in _KEEPING:
    COUNTS.rule(_op_type)(sample_numbers.kept(BATCHES.rules.get(("", _op_type), generic.followed)))

batch_rule = BATCHES.rule
"""Registers a function that follows samples through operators."""


def rule_of(node: Node) -> Rule | None:
    """Return the rule that samples follow through a node; None if nothing is known of it."""
    rule = BATCHES.of(node)
    return generic.followed if rule is None and AXES.of(node) is not None else rule
