"""Gelu(x + bias)  =>  BiasGelu(x, bias), and with Tanh  =>  FastGelu(x, bias)"""

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var

_biased = op.Add(var.x, var.bias)


@rewrite(
    op.Gelu(_biased, attrs=...)
    | op("com.microsoft").Gelu(_biased)
    | op("com.microsoft").FastGelu(_biased),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::BiasGelu", "com.microsoft::FastGelu"],
    numerics="reassociating",
)
def fuse_bias_gelu(graph: Graph, node: Node, x: Value, bias: Value) -> Value | Skip:
    """Add the bias in the operator that follows it."""
    if x.dtype == DataType.DOUBLE:
        return Skip("the operator's constants have six digits")
    if x.rank is not None and bias.rank is not None and x.rank < bias.rank:
        x, bias = bias, x
    if not x.shape or x.shape[-1] is None or bias.shape != x.shape[-1:]:
        return Skip("the bias is not one number for each element of the last dim")
    contrib = graph.op("com.microsoft")
    has_tanh = node.op_type == "FastGelu" or node.attr("approximate") == "tanh"
    return contrib.FastGelu(x, bias) if has_tanh else contrib.BiasGelu(x, bias)
