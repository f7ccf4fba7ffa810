"""Concat(x * c, y * c)  =>  Concat(x, y) * c, also of Div, Add and Sub"""

from collections.abc import Sequence

from tiered import Graph, Node, Skip, Value, op, rest, rewrite
from tiered.rewriter.idioms.elementwise.affine import placed, step_of


@rewrite(
    op.Concat(rest.operands, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def sink_affine_past_concat(
    graph: Graph, node: Node, operands: Sequence[Value | None]
) -> Value | Skip:
    """Compute once, after operands that all have the same step."""
    found = [step_of(operand) for operand in operands]
    steps = [step for step in found if step is not None]
    if len(steps) != len(found):
        return Skip("an operand is not made by an affine step")
    if not all(step.node.output.is_only_read_by(node) for step in steps):
        return Skip("an operand of Concat has other consumers")
    first = steps[0]
    if not all(step.is_like(first) for step in steps):
        return Skip("the steps differ")
    for each in (step.axis for step in steps):
        if isinstance(each, Skip):
            return each
    # Operands of one rank have equal constants along the same axis.
    axis, rank = first.axis, first.x.rank
    assert not isinstance(axis, Skip)
    if axis is not None and (rank is None or axis == int(node.attr("axis")) % rank):
        return Skip("the constant varies along the axis of Concat")
    joined = graph.op.like(node, *(step.x for step in steps))
    return graph.op.like(first.node, joined, placed(graph, first.c, axis, rank))
