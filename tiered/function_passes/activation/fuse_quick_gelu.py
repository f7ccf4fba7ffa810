"""x * Sigmoid(alpha * x)  =>  QuickGelu(x, alpha)"""

from tiered import Graph, Node, Skip, Value, rewrite, var
from tiered.rewriter.idioms.activation import swish_factor, swish_pattern


@rewrite(
    swish_pattern(var.x),
    opt_level=3,
    makes=["com.microsoft::QuickGelu"],
    numerics="reassociating",
)
def fuse_quick_gelu(graph: Graph, x: Value, alpha: Value | None, node: Node) -> Value | Skip:
    """Compute a sigmoid linear unit at once: that of CLIP has alpha 1.702, a swish 1."""
    factor = swish_factor(node, x, alpha)
    if isinstance(factor, Skip):
        return factor
    return graph.op("com.microsoft").QuickGelu(x, alpha=factor)
