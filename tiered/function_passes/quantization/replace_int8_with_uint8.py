"""DequantizeLinear(QuantizeLinear(x, s, z), s, z)  =>  the same of uint8, with z + 128, for int8"""

from typing import Final

from tiered import DataType, Graph, Node, PassContext, function_pass
from tiered.function_passes.quantization._signedness import (
    TO_UNSIGNED,
    change_signedness,
    quantized_values,
)

_PRODUCTS: Final = ("QLinearConv", "QLinearMatMul")

_WITH_CONSTANTS: Final = frozenset(("Add", "Concat", "Mul", "Where"))
"""Operators that require one integer dtype for all operands, constants included."""


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    quantization="operators",
    matches=("DequantizeLinear",),
)
def replace_int8_with_uint8(graph: Graph, ctx: PassContext) -> None:
    """Quantise data as uint8 for targets that multiply int8 slowly.

    Each integer and its zero point grow by 128, so that their difference, and each number, stays
    the same. Operators that only move integers stay; weights of products stay int8.
    """
    if not any(ctx.backend.is_slow(name, dtype=DataType.INT8) for name in _PRODUCTS):
        return
    for node, q in quantized_values(graph, TO_UNSIGNED, _is_operand):
        reason = change_signedness(graph, q, node, TO_UNSIGNED, _is_operand)
        if reason is not None:
            ctx.skip(node, reason)


def _is_operand(node: Node) -> bool:
    """Return whether a constant is dequantised for an operator that requires one dtype."""
    if not node.is_op("DequantizeLinear") or node.given(0).dtype != DataType.INT8:
        return False
    users = node.output.readers
    return bool(users) and all(user.op_type in _WITH_CONSTANTS for user in users)
