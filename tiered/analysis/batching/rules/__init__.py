"""The rules by operator, under `@batch_rule("Operator")`: what has none cannot be followed."""

from typing import Final

from tiered.analysis.batching.following import BATCHES as BATCHES, COUNTS as COUNTS
from tiered.analysis.batching.rules import (
    contrib as contrib,
    control_flow as control_flow,
    generic as generic,
    images as images,
    indexing as indexing,
    numbers,
    parts as parts,
    recurrent as recurrent,
    reshape as reshape,
    sequences as sequences,
    sizes as sizes,
)
from tiered.graph.queries.op_traits import VIEWS

_KEEPING: Final = (*VIEWS, "Cast", "Expand", "Slice", "Transpose")
"""Operators that leave the distance of the numbers of neighbouring samples as it is."""

for _op_type in _KEEPING:
    COUNTS.rule(_op_type)(numbers.kept(BATCHES.rules["", _op_type]))

batch_rule = BATCHES.rule
"""Registers a function that follows samples through operators."""
