"""QuantizeLinear(x, scale, zero)  =>  Cast(clamp(Round(x / scale), least, most) + zero)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.idioms.quantization_parts import along_axis, is_blocked

_TARGETS = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16)


@rewrite(
    op.QuantizeLinear(var.x, var.scale, opt.zero, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def lower_quantize(
    graph: Graph, node: Node, x: Value, scale: Value, zero: Value | None
) -> Value | Skip:
    """Divide, round half to even, saturate and convert: bit for bit what the operator does.

    NaN becomes the least number, as in onnxruntime: it is not greater than any.
    """
    dtype = node.output.dtype
    if dtype not in _TARGETS:
        return Skip("the quantised dtype is not 8 or 16 bits")
    if x.dtype != DataType.FLOAT or scale.dtype != DataType.FLOAT:
        return Skip("x or scale is not float")
    if node.attr("precision", 0) not in (0, DataType.FLOAT):
        return Skip("the quotient has another dtype")
    if is_blocked(node):
        return Skip("the scales are those of blocks")
    if x.rank is None or scale.rank is None:
        return Skip("the rank of x or scale is not known")
    ops, limits = graph.op, np.iinfo(DataType(dtype).numpy)
    rounded = ops.Round(ops.Div(x, along_axis(graph, node, x, scale)))
    least: Value = graph.constant(np.array(limits.min, np.float32), "least")
    most: Value = graph.constant(np.array(limits.max, np.float32), "most")
    number = None
    if zero is not None and not (zero.const is not None and not zero.const.any()):
        number = along_axis(graph, node, x, ops.Cast(zero, to=int(DataType.FLOAT)))
        least, most = ops.Sub(least, number), ops.Sub(most, number)
    clamped = ops.Min(ops.Where(ops.Greater(rounded, least), rounded, least), most)
    whole = clamped if number is None else ops.Add(clamped, number)
    return ops.Cast(whole, to=int(dtype))
