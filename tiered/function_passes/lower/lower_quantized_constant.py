"""DequantizeLinear(constant, s, z)  =>  its numbers"""

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, opt, rewrite
from tiered.rewriter.idioms.quantization_parts import is_blocked

_SOURCES = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32)


@rewrite(
    op.DequantizeLinear(const(name="x"), const(name="scale"), opt.zero, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def lower_quantized_constant(
    graph: Graph, node: Node, x: Constant, scale: Constant, zero: Value | None
) -> Value | Skip:
    """Store the numbers that integers stand for, on targets that have no such integers.

    A weight of int8 has four times the bytes then.
    """
    if x.dtype not in _SOURCES:
        return Skip("x is not an integer of 8, 16 or 32 bits")
    if scale.dtype != DataType.FLOAT:
        return Skip("the scale is not float")
    if is_blocked(node):
        return Skip("the scales are those of blocks")
    zeros = np.zeros((), np.float32) if zero is None else zero.const
    if zeros is None:
        return Skip("the zero point is not constant")
    if x.dtype == DataType.INT32 and zeros.any():
        return Skip("int32 has a zero point")
    axis = node.attr("axis", 1) if x.const.ndim > 1 else 0
    steps, middle = (_along(each, axis, x.const.ndim) for each in (scale.const, zeros))
    numbers = (x.const.astype(np.float32) - middle) * steps
    return graph.constant(numbers.reshape(x.const.shape), x.name)


def _along(
    parameter: np.ndarray[tuple[int, ...], np.dtype[np.generic]], axis: int, rank: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return a scale or a zero point in float, so that it broadcasts to a tensor."""
    numbers = parameter.astype(np.float32)
    if numbers.size == 1:
        return numbers.reshape(())
    return numbers.reshape([-1 if at == axis % rank else 1 for at in range(rank)])
