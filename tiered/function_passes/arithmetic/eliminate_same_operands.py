"""f(x, x)  =>  x,  f(Expand(x), x)  =>  Expand(x) for And, Or, Max, Min;  Where(c, x, x)  =>  x"""

import functools
import operator

import numpy as np

from tiered import Graph, Node, Skip, Value, broadcasts_into, op, opt, rewrite, var

_kinds = [op.And, op.Or, op.Max, op.Min, op.BitwiseAnd, op.BitwiseOr]
_wide = op.Expand(var.x, ...).bind("wide")
_twice = functools.reduce(operator.or_, [kind(var.x | _wide, var.x) for kind in _kinds])


@rewrite(_twice | op.Where(opt.condition, var.x, var.x), opt_level=2, required=("infer_shapes",))
def eliminate_same_operands(
    graph: Graph, x: Value, node: Node, condition: Value | None, wide: Node | None
) -> Value | Skip:
    """Read an operand instead of choosing between it and itself."""
    if wide is not None:
        return wide.output
    if condition is None or broadcasts_into(condition.shape, x.shape):
        return x
    if node.output.static_shape is None:
        return Skip("the condition may make the result larger")
    return graph.op.Expand(x, np.array(node.output.static_shape, np.int64))
