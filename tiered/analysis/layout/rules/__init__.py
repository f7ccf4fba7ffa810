"""How permutations propagate through operators: by their axis maps, and what these cannot say.

The axes of operands and outputs that are permuted together are those that an axis map walks
together; operators that compute element by element need no rule. A rule under
`@layout_rule("Operator")` says what no map does: which attributes and operands name axes, which
places are fixed, and what an operator is written as in another order.
"""

from __future__ import annotations

from tiered.analysis.axes.axis_map import NoMap, unknown
from tiered.analysis.layout.axis_propagation import FIXED, LAYOUTS as LAYOUTS, AxisPropagation
from tiered.analysis.layout.derived import elementwise, may_be_elementwise
from tiered.analysis.layout.rules import (
    named as named,
    placed as placed,
    product_layouts as product_layouts,
    structural_layouts as structural_layouts,
)
from tiered.graph import Node
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.rewriter import Skip

layout_rule = LAYOUTS.rule
"""Registers the decorated function as the layout rule of operators.

    @layout_rule("Scale", domain="my.domain")
    def scale(node):
        rank = node.inputs[0].rank
        if rank is None:
            return Skip("its rank is not known")
        labels = tuple(range(rank))
        return Propagation((labels,), (labels,), lambda op: op.emit({0: op.operand(0)}))

A rule takes a node and returns a `AxisPropagation`: which axes of operands and outputs are permuted
together, and how the operator is written in another order. A `Skip` says why it is in none. An
operator whose axis map says that it computes element by element needs no rule.
"""


def propagation_of(node: Node) -> AxisPropagation | Skip:
    """Return how permutations propagate through a node, or why none does."""
    rule = LAYOUTS.of(node)
    if rule is None:
        if not may_be_elementwise(node):
            return FIXED
        rule = elementwise
    why = unknown(node)
    if why is not None:
        return why
    if node.is_pinned:
        return Skip("training info or an annotation names its output")
    if None in node.outputs:
        return Skip("an output is absent")
    try:
        return rule(node)
    except (NoEquivalentForm, NoMap) as reason:
        return Skip("{}", str(reason))
