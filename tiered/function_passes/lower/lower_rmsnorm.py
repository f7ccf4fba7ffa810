"""RMSNormalization(x, scale)  =>  x / sqrt(mean(x * x) + epsilon) * scale"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.elementary_norm import standardized


@rewrite(
    op.RMSNormalization(var.x, var.scale, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    conflicts=("fuse_rmsnorm",),
    legalizes=True,
    numerics="reassociating",
)
def lower_rmsnorm(graph: Graph, node: Node, x: Value, scale: Value) -> Value | Skip:
    """Normalise by elementary operators."""
    if x.rank is None:
        return Skip("the dtype or the rank of x is not known")
    if scale.dtype != x.dtype:
        return Skip("scale and x differ in dtype")
    axes = range(node.attr("axis") % max(x.rank, 1), x.rank)
    return graph.op.Mul(standardized(graph, x, axes, node.attr("epsilon"), is_centred=False), scale)
