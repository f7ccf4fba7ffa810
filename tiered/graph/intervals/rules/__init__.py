"""Range rules: intervals of the outputs of an operator, a file for each family of operators.

A rule is a function under `@range_rule("Operator")`; a new one needs no other line.
"""

from tiered.graph.intervals.rules import (
    arithmetic as arithmetic,
    elementwise as elementwise,
    movement as movement,
    normalization as normalization,
    products as products,
    qonnx as qonnx,
    reduction as reduction,
)
from tiered.graph.intervals.rules.qonnx import (
    QONNX_DOMAINS as QONNX_DOMAINS,
    quantized_integers as quantized_integers,
)
from tiered.graph.intervals.rules.range_rule import (
    RANGES as RANGES,
    Call as Call,
    Counts as Counts,
    range_rule as range_rule,
)
