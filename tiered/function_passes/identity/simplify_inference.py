"""Dropout(x) outside training  =>  x"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Dropout(var.x, ..., attrs=...), opt_level=0)
def simplify_inference(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Drop what only training needs: a Dropout that drops nothing."""
    if len(node.outputs) > 1 and node.outputs[1] is not None and node.outputs[1].is_used:
        return Skip("the mask is used")
    training = node.operand("training_mode")
    if training is None:
        return x
    if training.const is None:
        return Skip("training_mode is not a constant")
    if training.const.any():
        return Skip("it is in training mode")
    return x
