"""The shape rules, by family of operators. Importing any of these modules registers all rules.

A rule is a function under `@shape_rule("Operator")`; a new one needs no other line.
"""

from tiered.graph.shape_inference.rules import contrib as contrib
from tiered.graph.shape_inference.rules import control_flow as control_flow
from tiered.graph.shape_inference.rules import data as data
from tiered.graph.shape_inference.rules import reshaping as reshaping
from tiered.graph.shape_inference.rules import standard as standard
from tiered.graph.shape_inference.rules import windows as windows
