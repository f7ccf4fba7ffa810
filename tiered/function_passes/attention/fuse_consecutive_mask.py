"""Softmax((scores + a) + b)  =>  Softmax(scores + (a + b)), if other layers add both masks"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Softmax(op.Add(op.Add(var.first, var.second), var.outer).bind("added"), axis=var.axis),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_common_subexpr",),
    numerics="reassociating",
)
def fuse_consecutive_mask(
    graph: Graph, node: Node, added: Node, first: Value, second: Value, outer: Value, axis: int
) -> Value | Skip:
    """Add two masks once for all layers, and their sum to the scores of each layer."""
    scores, inner = (first, second) if first.has_one_user else (second, first)
    if not scores.has_one_user:
        return Skip("scores and masks cannot be distinguished")
    if inner is outer or not _is_added_elsewhere(added, inner, outer):
        return Skip("no other layer adds both masks")
    shape = node.output.shape
    if shape is None or None in shape or scores.shape != shape:
        return Skip("the masks may be larger than the scores")
    return graph.op.Softmax(graph.op.Add(scores, graph.op.Add(inner, outer)), axis=axis)


def _is_added_elsewhere(added: Node, inner: Value, outer: Value) -> bool:
    """Return whether another node adds both masks to a value, or to each other."""
    others = (user.node for user in outer.users if user.node is not added)
    for other in others:
        for operand in other.reads if other.is_op("Add") else ():
            before = operand.producer
            if operand is inner or (
                before is not None and before.is_op("Add") and inner in before.inputs
            ):
                return True
    return False
