"""a * x + a * y  =>  a * (x + y), also of differences, where a is a constant"""

from tiered import Graph, Node, Skip, Value, op, rewrite
from tiered.rewriter.idioms.elementwise.affine import SCALE, step_of, why_no_factor


@rewrite(
    (op.Add | op.Sub)(SCALE, ...) | (op.Add | op.Sub)(..., SCALE),
    opt_level=None,
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def factorize(graph: Graph, node: Node) -> Value | Skip:
    """Scale once, after the sum.

    The sum rounds before the factor instead of after it, and may overflow if the factor is small.
    """
    x, y = (step_of(value) for value in node.inputs)
    if x is None or y is None:
        return Skip("an operand is not scaled by a constant")
    if not all(step.node.output.is_only_read_by(node) for step in (x, y)):
        return Skip("a scaled operand has other consumers")
    if not x.is_like(y):
        return Skip("the factors differ")
    if reason := why_no_factor(x.c):
        return reason
    return graph.op.like(x.node, graph.op.like(node, x.x, y.x), x.c)
