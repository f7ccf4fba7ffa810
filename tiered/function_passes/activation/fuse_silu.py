"""x * Sigmoid(alpha * x)  =>  Swish(x, alpha)"""

from tiered import Graph, Node, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Mul(var.x, op.Sigmoid(op.Mul(var.x, const(name="alpha"))))
    | op.Mul(var.x, op.Sigmoid(var.x)),
    opt_level=None,
    numerics="reassociating",
)
def fuse_silu(graph: Graph, x: Value, alpha: Value | None, node: Node) -> Value | Skip:
    """Compute the sigmoid linear unit at once.

    Opt-in: onnxruntime has no kernel for Swish and computes it in more steps than the chain, which
    its own fusion takes.
    """
    if x.rank is None or x.rank != node.output.rank:
        return Skip("a constant may give x more dims")
    factor = 1.0
    if alpha is not None:
        if alpha.const is None or alpha.const.size != 1:
            return Skip("alpha is not one number")
        factor = float(alpha.const.item())
    return graph.op.Swish(x, alpha=factor)
