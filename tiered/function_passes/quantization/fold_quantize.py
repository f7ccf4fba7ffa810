"""QuantizeLinear(constant, scale, zero)  =>  the integers"""

from typing import Final

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, opt, rewrite
from tiered.rewriter.idioms.quantization_parts import QUANTIZE, is_blocked

_INTEGERS: Final = (DataType.INT16, DataType.INT8, DataType.UINT16, DataType.UINT8)


@rewrite(
    QUANTIZE(const(name="x"), const(name="scale"), opt.zero, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def fold_quantize(
    graph: Graph, node: Node, x: Constant, scale: Constant, zero: Value | None
) -> Value | Skip:
    """Store the integers of a quantised weight; the DequantizeLinear that reads them stays.

    A quotient of two float32 is rounded to the nearest integer, ties to even, and saturates.
    """
    dtype = node.output.dtype
    if dtype not in _INTEGERS:
        return Skip("the integers are neither 8 nor 16 bits")
    if x.dtype != DataType.FLOAT or scale.dtype != DataType.FLOAT:
        return Skip("numbers or scales are not float32")
    if is_blocked(node) or node.attr("precision", 0) not in (0, DataType.FLOAT):
        return Skip("blocks, or another precision")
    zeros = np.zeros(1) if zero is None else zero.const
    if zeros is None:
        return Skip("the zero point is not a constant")
    if not np.isfinite(x.const).all() or not (scale.const > 0).all():
        return Skip("a number is not finite, or a scale not positive")
    dims = [1] * x.const.ndim
    if scale.const.size > 1:
        axis = int(node.attr("axis", 1))
        if x.const.shape[axis:][:1] != scale.const.shape:
            return Skip("the scales are not one for each index of the axis")
        dims[axis] = -1
    limits = np.iinfo(DataType(dtype).numpy)
    with np.errstate(over="ignore"):
        steps = np.rint(x.const / scale.const.reshape(dims))
    codes = steps.astype(np.float64) + zeros.astype(np.float64).reshape(dims)
    return graph.constant(np.clip(codes, limits.min, limits.max).astype(limits.dtype), "quantized")
