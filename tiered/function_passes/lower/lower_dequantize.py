"""DequantizeLinear(x, scale, zero)  =>  (Cast(x) - Cast(zero)) * scale"""

from tiered import DataType, Graph, Node, Skip, Value, opt, rewrite, var
from tiered.rewriter.idioms.quantization_parts import DEQUANTIZE, along_axis, is_blocked

_SOURCES = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32)


@rewrite(
    DEQUANTIZE(var.x, var.scale, opt.zero, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def lower_dequantize(
    graph: Graph, node: Node, x: Value, scale: Value, zero: Value | None
) -> Value | Skip:
    """Subtract and multiply in float: the difference of two 16-bit numbers is exact there."""
    if x.dtype not in _SOURCES:
        return Skip("x is not an integer of 8, 16 or 32 bits")
    if scale.dtype != DataType.FLOAT:
        return Skip("the scale is not float")
    if is_blocked(node):
        return Skip("the scales are those of blocks")
    if x.rank is None or scale.rank is None:
        return Skip("the rank of x or scale is not known")
    is_zero = zero is None or (zero.const is not None and not zero.const.any())
    if x.dtype == DataType.INT32 and not is_zero:
        return Skip("int32 has a zero point")
    ops = graph.op
    numbers = ops.Cast(x, to=int(DataType.FLOAT))
    if not is_zero:
        offset = ops.Cast(zero, to=int(DataType.FLOAT))
        numbers = ops.Sub(numbers, along_axis(graph, node, x, offset))
    return ops.Mul(numbers, along_axis(graph, node, x, scale))
