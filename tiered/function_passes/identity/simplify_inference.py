"""Dropout(x) that drops nothing  =>  x"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Dropout(var.x, ..., attrs="ignored"), opt_level=0)
def simplify_inference(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Drop what only training needs: a Dropout outside of it, or one with the ratio 0."""
    if any(mask is not None and mask.is_used for mask in node.outputs[1:]):
        return Skip("the mask is used")
    if node.version < 7:
        return x if node.attr("is_test") == 1 else Skip("is_test is 0")
    training, ratio = node.operand("training_mode"), node.operand("ratio")
    if training is None:
        return x
    if ratio is not None and ratio.const is not None and not ratio.const.any():
        return x
    if training.const is None:
        return Skip("training_mode is not a constant")
    if training.const.any():
        return Skip("it is in training mode")
    return x
