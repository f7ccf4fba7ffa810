"""Where(True, x, y)  =>  x, and Where(False, x, y)  =>  y"""

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, broadcasts_into, const, op, rewrite, var


@rewrite(op.Where(const(name="condition"), var.x, var.y), opt_level=2)
def eliminate_where(
    graph: Graph, condition: Constant, x: Value, y: Value, node: Node
) -> Value | Skip:
    """Read the branch that a constant condition selects, through an Expand if it is smaller.

    onnxruntime's Where returns +0.0 for a -0.0 of x, which contradicts the operator's definition:
    only there do the two differ.
    """
    if condition.const.any() and not condition.const.all():
        return Skip("the condition selects from both branches")
    taken, other = (x, y) if condition.const.all() else (y, x)
    if all(broadcasts_into(shape, taken.shape) for shape in (condition.tensor.shape, other.shape)):
        return taken
    if node.output.static_shape is None:
        return Skip("the result may be larger than the branch")
    return graph.op.Expand(taken, np.array(node.output.static_shape, np.int64))
