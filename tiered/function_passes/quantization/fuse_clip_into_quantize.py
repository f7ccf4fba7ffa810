"""QuantizeLinear(Clip(x, low, high), scale, zero)  =>  QuantizeLinear(x, scale, zero), Relu too"""

from typing import Any

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantization_parts import QUANTIZE

_clipped = op.Relu(var.x) | op.Clip(var.x, opt.low, opt.high).bind("clip")


@rewrite(QUANTIZE(_clipped, var.scale, opt.zero, attrs=...), opt_level=2)
def fuse_clip_into_quantize(
    graph: Graph,
    node: Node,
    clip: Node | None,
    x: Value,
    scale: Value,
    zero: Value | None,
    low: Value | None,
    high: Value | None,
) -> Value | Skip:
    """Drop a Clip with limits outside the range of the integers.

    Rounding keeps the order. If a limit quantises to the first or last integer of the dtype,
    numbers beyond it saturate to the same integer.
    """
    has_default = zero is None and not node.attr("output_dtype", 0)
    numbers = np.zeros(1, np.uint8) if has_default else None if zero is None else zero.const
    if numbers is None or scale.const is None or scale.dtype != DataType.FLOAT:
        return Skip("scale or zero point is not constant float32")
    scales = scale.const
    if numbers.dtype.kind not in "iu" or not ((scales > 0) & (scales < np.inf)).all():
        return Skip("a scale or zero point is not valid")
    if any(limit is not None and limit.number is None for limit in (low, high)):
        return Skip("a limit is not constant")
    least = 0.0 if clip is None else _number(low)
    ends = np.iinfo(numbers.dtype)
    for limit, end in ((least, ends.min), (_number(high), ends.max)):
        if limit is not None and not _is_end(limit, int(end), scales, numbers):
            return Skip("a limit is inside the integer range")
    result: Value = graph.op.like(node, x, scale, zero)
    return result


def _number(limit: Value | None) -> float | None:
    return None if limit is None else limit.number


def _is_end(limit: float, end: int, scales: Any, zeros: Any) -> bool:
    """Return whether a number quantises to the first or last integer, or beyond it."""
    with np.errstate(over="ignore"):
        rounded = np.rint(np.float32(limit) / scales).astype(np.float64) + zeros.astype(np.float64)
    return bool((rounded <= end if end <= 0 else rounded >= end).all())
