"""Split(x) into one part, or into x and empty parts  =>  x"""

from collections.abc import Sequence

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Split(var.x, ..., attrs="ignored"), opt_level=1)
def eliminate_nop_split(graph: Graph, x: Value, node: Node) -> Sequence[Value] | Value | Skip:
    """Drop a Split whose one part must be all of x; empty parts are constants."""
    if len(node.outputs) == 1:
        return x
    sizes = node.operand("split")
    if sizes is None or sizes.const is None:
        return Skip("it has several parts, whose sizes are not given")
    if np.count_nonzero(sizes.const) != 1 or sizes.const.size != len(node.outputs):
        return Skip("it has several parts")
    parts = []
    for size, part in zip(sizes.const.tolist(), node.outputs, strict=True):
        made = x if size or part is None or not part.is_used else _empty(graph, part)
        if isinstance(made, Skip):
            return made
        parts.append(made)
    return parts


def _empty(graph: Graph, part: Value) -> Value | Skip:
    """Return a constant without elements in place of a part."""
    shape = part.static_shape
    if shape is None or part.dtype is None:
        return Skip("an empty part has other dims that are not known")
    made: Value = graph.constant(np.zeros(shape, DataType(part.dtype).numpy), part.name)
    return made
