"""x * Tanh(Softplus(x))  =>  Mish(x)"""

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_softplus = op.Softplus(var.x) | op.Log(op.Add(op.Exp(var.x), 1.0))


@rewrite(op.Mul(var.x, op.Tanh(_softplus)), opt_level=3, numerics="reassociating")
def fuse_mish(graph: Graph, x: Value) -> Value | Skip:
    """Compute the mish at once."""
    if x.dtype == DataType.DOUBLE:
        return Skip("Mish has no kernel for doubles")
    return graph.op.Mish(x)
