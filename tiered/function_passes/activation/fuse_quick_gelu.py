"""x * Sigmoid(alpha * x)  =>  QuickGelu(x, alpha)"""

from tiered import Graph, Node, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Mul(var.x, op.Sigmoid(op.Mul(var.x, const(name="alpha"))))
    | op.Mul(var.x, op.Sigmoid(var.x)),
    opt_level=3,
    needs=["com.microsoft::QuickGelu"],
    numerics="reassociating",
)
def fuse_quick_gelu(graph: Graph, x: Value, alpha: Value | None, node: Node) -> Value | Skip:
    """Compute a sigmoid linear unit at once: that of CLIP has alpha 1.702, a swish 1."""
    if x.rank is None or x.rank != node.output.rank:
        return Skip("a constant may give x more dims")
    if alpha is None:
        return graph.op("com.microsoft").QuickGelu(x, alpha=1.0)
    if alpha.const is None or alpha.const.size != 1:
        return Skip("alpha is not one number")
    return graph.op("com.microsoft").QuickGelu(x, alpha=float(alpha.const.item()))
