"""QuantizeLinear(AveragePool(DequantizeLinear(x)))  =>  QLinearAveragePool(x), global ones too"""

from tiered import QUANTISED, Graph, Node, Skip, Value, op, quantized_unit, rewrite, var

_RANK = 4
_TAKEN = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


@rewrite(
    op.QuantizeLinear(
        (op.AveragePool | op.GlobalAveragePool)(var.x, attrs=...).bind("pool"), ..., attrs=...
    ),
    opt_level=3,
    required=("infer_shapes",),
    needs=[
        "com.microsoft::QLinearAveragePool",
        "com.microsoft::QLinearGlobalAveragePool",
    ],
    quantization="operators",
    numerics=QUANTISED,
)
def fuse_qdq_into_pool(graph: Graph, node: Node, pool: Node, x: Value) -> Value | Skip:
    """Add integers, divide and round once."""
    if pool.has_references:
        return Skip("the call of the function decides an attribute")
    units = quantized_unit(node, x)
    if isinstance(units, Skip):
        return units
    if x.rank != _RANK:
        return Skip("it is not known to be of pictures, with 4 dims")
    data, result = units
    contrib = graph.op("com.microsoft")
    operands = (*data.operands(graph), *result.parameters(graph))
    if pool.op_type == "GlobalAveragePool":
        return contrib.QLinearGlobalAveragePool(*operands, channels_last=0)
    settings = pool.settings
    if set(settings) - set(_TAKEN):
        return Skip("the windows have holes")
    if settings.get("ceil_mode"):
        return Skip("a window may reach beyond the picture")
    pooled: Value = contrib.QLinearAveragePool(*operands, **settings)
    return pooled
