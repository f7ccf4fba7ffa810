"""f(Expand(x, shape))  =>  Expand(f(x), shape), where f works element by element"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var

_elementwise = (
    op.Abs | op.Cast | op.Ceil | op.Cos | op.Erf | op.Exp | op.Floor | op.Gelu | op.LeakyRelu
    | op.Log | op.Neg | op.Not | op.Reciprocal | op.Relu | op.Sigmoid | op.Sign | op.Sin
    | op.Softplus | op.Sqrt | op.Tanh
)  # fmt: skip


@rewrite(
    _elementwise(op.Expand(var.x, var.shape), attrs=...), opt_level=3, numerics="reassociating"
)
def post_expand(graph: Graph, node: Node, x: Value, shape: Value) -> Value | Skip:
    """Compute before the elements are repeated, so once for all of them.

    Kernels that compute several elements at a time may round those that are left otherwise.
    """
    if node.has_references:
        return Skip("the call of the function decides an attribute")
    once: Value = getattr(graph.op, node.op_type)(x, **node.attributes)
    return graph.op.Expand(once, shape)
