"""InstanceNormalization(x, scale, bias)  =>  (x - mean) / sqrt(variance + epsilon) * scale + ..."""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.elementary_norm import standardized


@rewrite(
    op.InstanceNormalization(var.x, var.scale, var.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    conflicts=("fuse_instancenorm",),
    legalizes=True,
    numerics="reassociating",
)
def lower_instancenorm(
    graph: Graph, node: Node, x: Value, scale: Value, bias: Value
) -> Value | Skip:
    """Normalise each channel of each image by elementary operators."""
    if x.rank is None or x.rank < 3:
        return Skip("the dtype or the rank of x is not known")
    normed = standardized(graph, x, range(2, x.rank), node.attr("epsilon"))
    shape = graph.constant(np.array([-1, *[1] * (x.rank - 2)], np.int64), "shape")
    ops = graph.op
    return ops.Add(ops.Mul(normed, ops.Reshape(scale, shape)), ops.Reshape(bias, shape))
