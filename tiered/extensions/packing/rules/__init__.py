"""The rules by operator, under `@packing_rule("Operator")`.

An operator without one is related by its axis map; one that has no map either is refused, unless
all its operands are constant.
"""

from tiered.analysis.axes.rules import AXES
from tiered.extensions.packing.interpretation import PACKINGS as PACKINGS, Rule
from tiered.extensions.packing.rules import (
    mapped,
    mixing as mixing,
    packed_axes as packed_axes,
    packed_elements as packed_elements,
    packed_indices as packed_indices,
)
from tiered.graph import Node

packing_rule = PACKINGS.rule
"""Registers a function as the packing rule of operators."""


def rule_of(node: Node) -> Rule | None:
    """Return the rule of a node; None if nothing is known of it."""
    rule = PACKINGS.of(node)
    return mapped.mapped if rule is None and AXES.of(node) is not None else rule
