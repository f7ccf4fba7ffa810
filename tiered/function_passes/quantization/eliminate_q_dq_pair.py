"""QuantizeLinear(DequantizeLinear(q, scale, zero), scale, zero)  =>  q"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, opt, rewrite, var
from tiered.rewriter.idioms.quantization_parts import DEQUANTIZE, QUANTIZE
from tiered.rewriter.idioms.quantized_tensors import INTEGER_SPAN

# A graph output of fewer bits would need an Identity, for which onnxruntime has no kernel.
_INTEGERS: Final = (DataType.INT16, DataType.INT8, DataType.UINT16, DataType.UINT8)


@rewrite(
    QUANTIZE(
        DEQUANTIZE(var.q, var.scale, opt.zero, axis=..., block_size=...).bind("first").shared(),
        var.again,
        opt.zero_again,
        axis=...,
        block_size=...,
        output_dtype=...,
    ),
    opt_level=2,
)
def eliminate_q_dq_pair(
    graph: Graph,
    node: Node,
    first: Node,
    q: Value,
    scale: Value,
    zero: Value | None,
    again: Value,
    zero_again: Value | None,
) -> Value | Skip:
    """Read the original integers, which the pair does not change.

    Let n = q - zero, below 2**16. n * scale / scale has two rounding errors of 2**-24 each, so it
    differs from n by less than a half, if the scale is an ordinary number.
    """
    if q.dtype not in _INTEGERS or node.output.dtype != q.dtype:
        return Skip("integers are neither 8 nor 16 bits")
    if scale.const is None or again.const is None:
        return Skip("a scale is not a constant")
    if scale.dtype != DataType.FLOAT:
        return Skip("the scale is not float32")
    if not _equal(scale, again) or not _equal(zero, zero_again):
        return Skip("the scales or zero points may differ")
    axes, blocks = (
        {unit.attr(name, default) for unit in (first, node)}
        for name, default in (("axis", 1), ("block_size", 0))
    )
    if scale.const.size != 1 and (len(axes) > 1 or len(blocks) > 1):
        return Skip("the axes differ")
    reach = np.abs(scale.const.astype(np.float64)) * INTEGER_SPAN
    if not ((reach > 0) & (reach < np.finfo(np.float32).max)).all():
        return Skip("a scale is zero, NaN or too large")
    return q


def _equal(one: Value | None, other: Value | None) -> bool:
    """Return whether two operands are the same numbers; an absent zero point is 0."""
    if one is None or other is None:
        given = one or other
        return given is None or (given.const is not None and not given.const.any())
    if one is other:
        return True
    return (
        one.const is not None and other.const is not None and np.array_equal(one.const, other.const)
    )
