"""(1 / x) * y  =>  y / x, also of Reciprocal"""

from tiered import Graph, Node, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Mul(op.Reciprocal(var.x) | op.Div(const(1), var.x), var.y),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_reciprocal_into_div(graph: Graph, node: Node, x: Value, y: Value) -> Value | Skip:
    """Divide once, which rounds once, if x has the shape of the result or is a square root.

    If x is smaller, a few reciprocals and many products are cheaper than many quotients. Roots are
    those of norms, and runtimes know norms in the form y / Sqrt(x).
    """
    if not x.is_float:
        return Skip("the dividend is not a float")
    is_root = x.producer is not None and x.producer.is_op("Sqrt")
    if not is_root and (x.shape is None or None in x.shape or x.shape != node.output.shape):
        return Skip("x may have fewer elements than the result")
    return graph.op.Div(y, x)
