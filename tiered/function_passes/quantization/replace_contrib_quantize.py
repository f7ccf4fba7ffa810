"""com.microsoft::QuantizeLinear(x, s, z)  =>  QuantizeLinear(x, s, z), and DequantizeLinear"""

from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var

_contrib = op("com.microsoft")
_FIRST: Final = {
    DataType.FLOAT: 10,
    DataType.FLOAT16: 19,
    DataType.INT8: 10,
    DataType.UINT8: 10,
    DataType.INT32: 10,
    DataType.INT16: 21,
    DataType.UINT16: 21,
    DataType.INT4: 21,
    DataType.UINT4: 21,
}
"""The first opset whose standard operators take a dtype."""

_PER_AXIS: Final = 13


@rewrite(
    _contrib.QuantizeLinear(var.x, var.scale, opt.zero, attrs=...)
    | _contrib.DequantizeLinear(var.x, var.scale, opt.zero, attrs=...),
    opt_level=2,
)
def replace_contrib_quantize(
    graph: Graph, node: Node, x: Value, scale: Value, zero: Value | None
) -> Value | Skip:
    """Use the standard operator, which all passes know, where the opset has it for these dtypes.

    Models of opset 20 and before have integers of 16 bits by onnxruntime's own operators only.
    """
    settings = dict(node.attributes)
    if settings.pop("block_size", 0):
        return Skip("a scale is for a block of numbers")
    axis = settings.pop("axis", None)
    if settings:
        return Skip("an attribute that the standard operator lacks")
    if axis is None and scale.rank != 0:
        return Skip("the scale is not known to be one number")
    if axis is not None and scale.rank != 1:
        return Skip("the scale is not known to be a vector")
    dtypes = [value.dtype for value in (x, scale, zero) if value is not None]
    first = [_FIRST.get(DataType(dtype)) if dtype else None for dtype in dtypes]
    if axis is not None:
        first.append(_PER_AXIS)
    if any(each is None or each > graph.opset() for each in first):
        return Skip("the opset has no such dtype or axis")
    build = graph.op.named(node.op_type)
    made: Value = build(x, scale, zero) if axis is None else build(x, scale, zero, axis=axis)
    return made
