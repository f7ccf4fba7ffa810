"""x * Sigmoid(alpha * x)  =>  Swish(x, alpha)"""

from tiered import Graph, Node, Skip, Value, rewrite, var
from tiered.rewriter.idioms.activation import swish_factor, swish_pattern


@rewrite(
    swish_pattern(var.x),
    opt_level=None,
    numerics="reassociating",
)
def fuse_silu(graph: Graph, x: Value, alpha: Value | None, node: Node) -> Value | Skip:
    """Compute the sigmoid linear unit at once.

    Opt-in: onnxruntime has no kernel for Swish and computes it in more steps than the chain, which
    its own fusion takes.
    """
    factor = swish_factor(node, x, alpha)
    return factor if isinstance(factor, Skip) else graph.op.Swish(x, alpha=factor)
