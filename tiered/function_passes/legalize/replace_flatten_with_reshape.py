"""Flatten(x) of a known shape  =>  Reshape(x, shape)"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Flatten(var.x, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def replace_flatten_with_reshape(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Join dims by an operator that names the result's.

    Opt-in: for targets that have no Flatten, as Core ML; `legalize` uses it for them.
    """
    dims = x.shape
    if dims is None:
        return Skip("the rank of x is not known")
    axis = int(node.attr("axis"))
    if axis < 0:
        axis += len(dims)
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) < len(dims):
        return Skip("a dim of x is not known")
    if 0 in sizes:
        return Skip("x has no elements")
    shape = [int(np.prod(part, dtype=np.int64)) for part in (sizes[:axis], sizes[axis:])]
    return graph.op.Reshape(x, np.array(shape, np.int64))
