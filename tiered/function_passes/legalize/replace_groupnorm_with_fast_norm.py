"""GroupNormalization(x) of one group  =>  LayerNormalization of the image, or FastNorm(x)"""

import math
from collections.abc import Sequence

import numpy as np

from tiered import DataType, Graph, Node, Skip, UsageError, Value, op, rewrite, substitute, var


@rewrite(
    op.GroupNormalization(var.x, var.scale, var.bias, num_groups=1, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_groupnorm_with_fast_norm(
    graph: Graph, node: Node, x: Value, scale: Value, bias: Value, *, custom: str = ""
) -> Value | Sequence[Value | None] | Skip:
    """Normalise one group by an operator with a kernel, then scale the channels.

    Args:
        custom: an operator of the target instead, as "ai.graphcore::FastNorm": it is called as a
            local function that holds the GroupNormalization.

    Raises:
        UsageError: `custom` names no domain.
    """
    if custom:
        domain, _, name = custom.rpartition("::")
        if not domain:
            raise UsageError(f"custom={custom!r} is no domain::Name")
        return substitute(node, domain, name)
    sizes = [dim for dim in (x.shape or ())[1:] if isinstance(dim, int) and dim]
    if x.rank is None or x.rank < 3 or len(sizes) != x.rank - 1:
        return Skip("channels and image size are not known")
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("the dtype of x is not known")
    ops, size = graph.op, math.prod(sizes)
    ones = graph.constant(np.ones(size, DataType(x.dtype).numpy), "ones")
    flat = ops.Reshape(x, np.array([0, size], np.int64))
    normed = ops.LayerNormalization(flat, ones, epsilon=node.attr("epsilon"))
    image = ops.Reshape(normed, np.array([0, *sizes], np.int64))
    shape = graph.constant(np.array([-1, *[1] * (x.rank - 2)], np.int64), "shape")
    return ops.Add(ops.Mul(image, ops.Reshape(scale, shape)), ops.Reshape(bias, shape))
