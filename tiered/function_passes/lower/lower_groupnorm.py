"""GroupNormalization(x, scale, bias)  =>  the norm of each group of channels * scale + bias"""

import math

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.elementary_norm import FLOATS, standardized

_OF_CHANNELS = 21
"""The version since which a channel has a scale of its own; before, a group has one."""


@rewrite(
    op.GroupNormalization(var.x, var.scale, var.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_groupnorm(graph: Graph, node: Node, x: Value, scale: Value, bias: Value) -> Value | Skip:
    """Normalise groups of channels by elementary operators; the batch may be dynamic."""
    if x.dtype not in FLOATS:
        return Skip("the dtype of x is not known")
    sizes = [dim for dim in (x.shape or ())[1:] if isinstance(dim, int) and dim]
    groups = int(node.attr("num_groups"))
    if x.rank is None or x.rank < 2 or len(sizes) != x.rank - 1 or sizes[0] % groups:
        return Skip("channels and image size are not known")
    ops = graph.op
    apart = ops.Reshape(x, np.array([0, groups, math.prod(sizes) // groups], np.int64))
    normed = standardized(graph, apart, (2,), node.attr("epsilon"))
    whole, back = np.array([0, *sizes], np.int64), [-1, *[1] * (x.rank - 2)]
    if node.version >= _OF_CHANNELS:
        normed = ops.Reshape(normed, whole)
    else:
        back = [-1, 1]
    shape = graph.constant(np.array(back, np.int64), "shape")
    made = ops.Add(ops.Mul(normed, ops.Reshape(scale, shape)), ops.Reshape(bias, shape))
    return made if node.version >= _OF_CHANNELS else ops.Reshape(made, whole)
