"""Split(x * c)  =>  each part of Split(x) * c, also of Div, Add and Sub"""

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.rewriter.idioms.elementwise.affine import AffineStep, placed, step_of


@function_pass(
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    matches=("Split",),
    touches=("Add", "Div", "Mul", "Sub"),
)
def sink_affine_past_split(graph: Graph, ctx: PassContext) -> None:
    """Compute in the parts, as many elements as before, where the steps may move on."""
    for split in graph.topological_order():
        step = step_of(split.input(0)) if split.is_op("Split") else None
        if step is None:
            continue
        constant = _constant_of_parts(graph, split, step)
        if isinstance(constant, Skip):
            ctx.skip(split, constant)
            continue
        with graph.rewrite("Split(x * c) => Split(x) * c", split):
            count, others = len(split.outputs), split.operands[1:]
            parts = graph.op.like(split, step.x, *others, outputs=count, split=None)
            graph.replace(split, [graph.op.like(step.node, part, constant) for part in parts])


def _constant_of_parts(graph: Graph, split: Node, step: AffineStep) -> Value | Skip:
    """Return the constant for each part."""
    if len(split.outputs) == 1:
        return Skip("Split has one part")
    if not step.node.output.is_only_read_by(split):
        return Skip("the operand of Split has other consumers")
    if split.parameter_reason:
        return Skip("{}", split.parameter_reason)
    axis, rank = step.axis, step.x.rank
    if isinstance(axis, Skip):
        return axis
    if axis is not None and (rank is None or axis == int(split.attr("axis")) % rank):
        return Skip("the constant varies along the axis of Split")
    return placed(graph, step.c, axis, rank)
