"""The rules by operator, under `@batch_rule("Operator")`.

An operator without one is followed by its axis map; one that has no map either cannot be followed.
"""

from typing import Final

from tiered.analysis.axes.rules import AXES
from tiered.analysis.batching.following import BATCHES as BATCHES, COUNTS as COUNTS, Rule
from tiered.analysis.batching.rules import (
    contrib as contrib,
    control_flow as control_flow,
    generic,
    images as images,
    indexing as indexing,
    lists as lists,
    numbers,
    parts as parts,
    recurrent as recurrent,
    reshape as reshape,
    sequences as sequences,
    sizes as sizes,
)
from tiered.graph import Node
from tiered.graph.queries.op_traits import VIEWS

_KEEPING: Final = (*VIEWS, "Cast", "Expand", "Slice", "Transpose")
"""Operators that leave the distance of the numbers of neighbouring samples as it is."""

for _op_type in _KEEPING:
    COUNTS.rule(_op_type)(numbers.kept(BATCHES.rules.get(("", _op_type), generic.followed)))

batch_rule = BATCHES.rule
"""Registers a function that follows samples through operators."""


def rule_of(node: Node) -> Rule | None:
    """Return the rule that samples follow through a node; None if nothing is known of it."""
    rule = BATCHES.of(node)
    return generic.followed if rule is None and AXES.of(node) is not None else rule
