"""Where(True, x, y)  =>  x, and Where(False, x, y)  =>  y"""

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, broadcasts_into, const, op, rewrite, var


@rewrite(op.Where(const(name="condition"), var.x, var.y), opt_level=2)
def eliminate_where(
    graph: Graph, condition: Constant, x: Value, y: Value, node: Node
) -> Value | Skip:
    """Read the branch that a constant condition always takes; one that grows, by an Expand.

    onnxruntime's Where makes +0.0 of a -0.0 that it takes from x: there, and nowhere in the
    operator's definition, the two differ.
    """
    if condition.const.any() and not condition.const.all():
        return Skip("the condition takes from both")
    taken, other = (x, y) if condition.const.all() else (y, x)
    if all(broadcasts_into(shape, taken.shape) for shape in (condition.tensor.shape, other.shape)):
        return taken
    if node.output.static_shape is None:
        return Skip("the result may be larger than the branch")
    return graph.op.Expand(taken, np.array(node.output.static_shape, np.int64))
