"""The shape rules, by family of operators. Importing any of these modules registers all rules.

A rule is a function under `@shape_rule("Operator")`; a new one needs no other line.
"""

from tiered.graph.shape_inference.rules import (
    contrib_types as contrib_types,
    control_flow_types as control_flow_types,
    data as data,
    qonnx_types as qonnx_types,
    reshaped_types as reshaped_types,
    standard_types as standard_types,
    window_types as window_types,
)
