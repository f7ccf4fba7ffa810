"""Concat(-x[h:], x[:h])  =>  MatMul(x, signed permutation)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, rewrite
from tiered.rewriter.idioms.rotary import are_halves, rotated_half


@rewrite(
    rotated_half.bind("joined"),
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
)
def matmul_rotary_embedding(
    graph: Graph,
    joined: Node,
    x: Value,
    first: Node | None,
    second: Node | None,
    split: Node | None,
) -> Value | Skip:
    """Rotate the halves of the last axis by a product, for targets that are best at products.

    x must be finite: the product of 0 and Inf is NaN, in elements that the Inf is not in.
    """
    size = x.dim(-1) if x.rank else None
    if not isinstance(size, int) or size % 2 or x.rank is None:
        return Skip("the last dim is not known even")
    if x.dtype not in (DataType.FLOAT, DataType.FLOAT16, DataType.DOUBLE):
        return Skip("the dtype has no product")
    is_last = joined.attr("axis") in (-1, x.rank - 1)
    if not is_last or not are_halves(size, x.rank, first, second, split):
        return Skip("the rotated parts are not halves")
    half = size // 2
    rotation = np.zeros((size, size), DataType(x.dtype).numpy)
    rotation[np.arange(half) + half, np.arange(half)] = -1
    rotation[np.arange(half), np.arange(half) + half] = 1
    return graph.op.MatMul(x, graph.constant(rotation, "rotation"))
