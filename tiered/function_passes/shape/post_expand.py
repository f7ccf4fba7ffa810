"""f(Expand(x, shape))  =>  Expand(f(x), shape), if f is elementwise"""

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var

_elementwise = (
    op.Abs | op.Cast | op.Ceil | op.Cos | op.Erf | op.Exp | op.Floor | op.Gelu | op.LeakyRelu
    | op.Log | op.Neg | op.Not | op.Reciprocal | op.Relu | op.Sigmoid | op.Sign | op.Sin
    | op.Softplus | op.Sqrt | op.Tanh
)  # fmt: skip


@rewrite(
    _elementwise(op.Expand(var.x, var.shape), attrs=...), opt_level=3, numerics="reassociating"
)
def post_expand(graph: Graph, node: Node, x: Value, shape: Value) -> Value | Skip:
    """Compute before the elements are repeated, so only once for each.

    Vectorised kernels may round the elements of an incomplete vector differently.
    """
    if not _expands(node):
        return Skip("Expand does not support the dtype")
    return graph.op.Expand(graph.op.like(node, x), shape)


def _expands(node: Node) -> bool:
    """Return whether Expand supports the node's output dtype: a Cast may have any."""
    expand, result = node.producer(0), node.output.dtype
    if expand is None or expand.schema is None or result is None:
        return False
    return f"tensor({DataType(result).name.lower()})" in expand.schema.inputs[0].types
