"""f(x, x)  =>  x for And, Or, Max, Min, BitwiseAnd, BitwiseOr;  Where(condition, x, x)  =>  x"""

import numpy as np

from tiered import Graph, Node, Skip, Value, broadcasts_into, op, opt, rewrite, var

_twice = (
    op.And(var.x, var.x)
    | op.Or(var.x, var.x)
    | op.Max(var.x, var.x)
    | op.Min(var.x, var.x)
    | op.BitwiseAnd(var.x, var.x)
    | op.BitwiseOr(var.x, var.x)
)


@rewrite(_twice | op.Where(opt.condition, var.x, var.x), opt_level=2, required=("infer_shapes",))
def eliminate_same_operands(
    graph: Graph, x: Value, node: Node, condition: Value | None
) -> Value | Skip:
    """Read an operand instead of choosing between it and itself."""
    if condition is None or broadcasts_into(condition.shape, x.shape):
        return x
    if node.output.static_shape is None:
        return Skip("the condition may make the result larger")
    return graph.op.Expand(x, np.array(node.output.static_shape, np.int64))
