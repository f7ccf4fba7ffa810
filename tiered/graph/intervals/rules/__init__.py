"""Range rules: intervals of the outputs of an operator, a file for each family of operators.

A rule is a function under `@range_rule("Operator")`; a new one needs no other line.
"""

from tiered.graph.intervals.rules import (
    arithmetic_ranges as arithmetic_ranges,
    elementwise_ranges as elementwise_ranges,
    movement_ranges as movement_ranges,
    normalization_ranges as normalization_ranges,
    product_ranges as product_ranges,
    qonnx_ranges as qonnx_ranges,
    reduction_ranges as reduction_ranges,
)
from tiered.graph.intervals.rules.qonnx_ranges import (
    QONNX_DOMAINS as QONNX_DOMAINS,
    quantized_integers as quantized_integers,
)
from tiered.graph.intervals.rules.range_rule import (
    RANGES as RANGES,
    Counts as Counts,
    RangeCall as RangeCall,
    range_rule as range_rule,
)
