"""Relu(x * c)  =>  Relu(x) * c, for c > 0, also MaxPool and GlobalMaxPool, and Div"""

from typing import Final

from tiered import Graph, Node, Skip, Value, op, rewrite
from tiered.rewriter.idioms.elementwise.affine import SCALE, varying_axis, why_no_factor

_POOLED: Final = 2
"""The first axis that a pool combines elements along."""


@rewrite(
    (op.GlobalMaxPool | op.MaxPool | op.Relu)(SCALE, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
)
def sink_scale_past_maximum(
    graph: Graph, node: Node, step: Node, x: Value, c: Value
) -> Value | Skip:
    """Scale after the maximum, which a positive factor does not change.

    All numbers are equal; but a product that underflows decides the sign of a zero.
    """
    if reason := why_no_factor(c):
        return reason
    assert c.const is not None
    if not (c.const > 0).all():
        return Skip("a factor is negative")
    if len([*filter(None, node.outputs)]) > 1:
        return Skip("equal products change the indices of MaxPool")
    axis = varying_axis(x, c.const)
    if isinstance(axis, Skip):
        return axis
    if node.op_type != "Relu" and axis is not None and axis >= _POOLED:
        return Skip("the factors vary along a pooled axis")
    return graph.op.like(step, graph.op.like(node, x), c)
