"""DequantizeLinear(QuantizeLinear(x, s, z), s, z)  =>  the same of int8, with z - 128, for uint8"""

from tiered import DataType, Graph, Node, PassContext, function_pass
from tiered.function_passes.quantization._signedness import (
    TO_SIGNED,
    change_signedness,
    quantized_values,
)


@function_pass(
    opt_level=1,
    required=("infer_shapes",),
    matches=("DequantizeLinear",),
)
def replace_uint8_with_int8(graph: Graph, ctx: PassContext) -> None:
    """Quantise as int8 for targets that take no uint8.

    Each integer and its zero point are lowered by 128, so that their difference, and each number,
    stays the same. Operators that only move integers stay.
    """
    target, name = ctx.backend, "DequantizeLinear"
    takes = [target.supports(name, dtype=dtype) for dtype in (DataType.UINT8, DataType.INT8)]
    if takes != [False, True]:
        return
    for node, q in quantized_values(graph, TO_SIGNED, _is_unsigned):
        reason = change_signedness(graph, q, node, TO_SIGNED, _is_unsigned)
        if reason is not None:
            ctx.skip(node, reason)


def _is_unsigned(node: Node) -> bool:
    return node.is_op("DequantizeLinear") and node.given(0).dtype == DataType.UINT8
