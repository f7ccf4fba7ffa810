"""Expand(x, shape)  =>  Tile(Reshape(x), repeats)"""

import numpy as np

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Expand(var.x, var.shape), opt_level=None, required=("infer_shapes",), legalizes=True)
def replace_expand_with_tile(graph: Graph, x: Value, shape: Value) -> Value | Skip:
    """Repeat the axes of size 1 as often as the result has elements there."""
    if shape.const is None:
        return Skip("shape is not a constant")
    if x.shape is None:
        return Skip("the rank of x is not known")
    wanted = [int(size) for size in shape.const]
    rank = max(len(x.shape), len(wanted))
    if rank == 0:
        return Skip("x and its result are scalars")
    dims = (*(1,) * (rank - len(x.shape)), *x.shape)
    sizes = (*(1,) * (rank - len(wanted)), *wanted)
    if any(not isinstance(dim, int) for dim in dims):
        return Skip("the dims of x are not numbers")
    if 0 in dims:
        return Skip("x is empty")
    repeats = [size if dim == 1 else 1 for dim, size in zip(dims, sizes, strict=True)]
    wide = x
    if len(x.shape) < rank:
        wide = graph.op.Reshape(x, np.array(dims, np.int64))
    return graph.op.Tile(wide, np.array(repeats, np.int64))
