"""ReduceMean(x)  =>  ReduceSum(x * 1 / N), in float16"""

import math
from typing import Final, Literal

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, opt, rewrite, var

_MOST: Final = 1 << 14
"""1 / N of a larger N is subnormal in float16."""


@rewrite(
    op.ReduceMean(var.x, opt.axes, keepdims=var.keepdims, noop_with_empty_axes=var.noop),
    opt_level=None,
    numerics="approximate",
)
def replace_half_reducemean(
    graph: Graph,
    x: Value,
    axes: Value | None,
    keepdims: int,
    noop: int | None,
    *,
    form: Literal["product", "float"] = "product",
) -> Value | Skip:
    """Keep a sum from overflowing, which is N times as large as the mean.

    Args:
        form: divide each number first, or compute the mean in float.
    """
    if x.dtype != DataType.FLOAT16:
        return Skip("the operand is not float16")
    numbers = None if axes is None else axes.const
    if axes is not None and numbers is None:
        return Skip("axes is not a constant")
    places = None if numbers is None else numbers.ravel().tolist()
    if not places and noop:
        return Skip("nothing is reduced")
    if form == "float":
        wide = graph.op.Cast(x, to=int(DataType.FLOAT))
        mean = graph.op.ReduceMean(wide, axes, keepdims=keepdims)
        return graph.op.Cast(mean, to=int(DataType.FLOAT16))
    if x.rank is None:
        return Skip("the rank of x is not known")
    dims = [x.dim(axis) for axis in (places or range(x.rank))]
    sizes = [dim for dim in dims if isinstance(dim, int)]
    if len(sizes) < len(dims):
        return Skip("a reduced dim is not a number")
    count = math.prod(sizes)
    if not 0 < count <= _MOST:
        return Skip("1 / {} is not a normal number of float16", count)
    part = graph.constant(np.array(1 / count, np.float16))
    return graph.op.ReduceSum(graph.op.Mul(x, part), axes, keepdims=keepdims)
