"""The rules: how permutations propagate through each operator, under `@layout_rule("Operator")`."""

from __future__ import annotations

from typing import Final

from tiered.analysis.layout.propagation import LAYOUTS as LAYOUTS, Propagation
from tiered.analysis.layout.rules import (
    axes as axes,
    elementwise as elementwise,
    normalization as normalization,
    products as products,
    structure as structure,
    vectors as vectors,
)
from tiered.graph import Node
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.rewriter import Skip

_OF_ANY_OPSET: Final = ("LayerNormalization",)
"""Operators that onnxruntime writes in opsets older than the first that has them."""

FIXED: Final = Skip("the operator fixes its axis order")


_OWN_DOMAINS: Final = ("", "com.microsoft")
"""The domains of operators that rules of this package are for."""

layout_rule = LAYOUTS.rule
"""Registers the decorated function as the layout rule of operators.

    @layout_rule("Scale", domain="my.domain")
    def scale(node):
        rank = node.inputs[0].rank
        if rank is None:
            return Skip("its rank is not known")
        labels = tuple(range(rank))
        return Propagation((labels,), (labels,), lambda op: op.emit({0: op.operand(0)}))

A rule takes a node and returns a `Propagation`: which axes of operands and outputs are permuted
together, and how the operator is written in another order. A `Skip` says why it is in none.
"""


def propagation_of(node: Node) -> Propagation | Skip:
    """Return how permutations propagate through a node, or why none does."""
    rule = LAYOUTS.of(node)
    if rule is None:
        return FIXED
    functions = node.owner.model.functions
    if functions and node.domain in _OWN_DOMAINS and node.owner.model.function(*node.callee):
        # A function may compute anything; a rule of a user speaks for the operator by its name.
        return FIXED
    if not node.domain and node.schema is None and node.op_type not in _OF_ANY_OPSET:
        return Skip("its opset has no such operator")
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if node.is_pinned:
        return Skip("training info or an annotation names its output")
    if None in node.outputs:
        return Skip("an output is absent")
    try:
        return rule(node)
    except NoEquivalentForm as error:
        return Skip("{}", str(error))
