"""The shape rules, by family of operators. Importing any of these modules registers all rules.

A rule is a function under `@shape_rule("Operator")`; a new one needs no other line.
"""

from tiered.graph.shape_inference.rules import (
    contrib as contrib,
    control_flow as control_flow,
    data as data,
    qonnx as qonnx,
    reshaping as reshaping,
    standard as standard,
    windows as windows,
)
