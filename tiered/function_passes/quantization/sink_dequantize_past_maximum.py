"""MaxPool(DequantizeLinear(q))  =>  DequantizeLinear(MaxPool(q)); Relu becomes Max(q, zero)"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.quantization_parts import DEQUANTIZE, along_axis, is_one, why_not_moved

_INTEGERS: Final = (DataType.INT8, DataType.UINT8)
"""The dtypes of the kernels of MaxPool and Max that are next to floats."""

_SINCE: Final = 12
"""The first opset with these operators on integers of 8 bits."""

_POOLED: Final = 2
"""The first axis that a pool combines elements along."""


@rewrite(
    (op.MaxPool | op.Relu)(
        DEQUANTIZE(var.q, var.scale, opt.zero, attrs=...).bind("unit"), attrs=...
    ),
    opt_level=None,
    required=("infer_shapes",),
)
def sink_dequantize_past_maximum(
    graph: Graph, node: Node, unit: Node, q: Value, scale: Value, zero: Value | None
) -> Value | Skip:
    """Take the maximum of integers, whose order positive scales keep."""
    if reason := why_not_moved(unit):
        return reason
    if q.dtype not in _INTEGERS or graph.opset() < _SINCE:
        return Skip("there is no kernel for these integers")
    if scale.const is None or not ((scale.const > 0) & np.isfinite(scale.const)).all():
        return Skip("a scale is not a positive constant")
    if len([*filter(None, node.outputs)]) > 1:
        return Skip("dequantised equals change the indices of MaxPool")
    if q.rank is None:
        return Skip("the rank of the integers is not known")
    if node.op_type == "Relu":
        most = graph.op.Max(q, _zero(graph, unit, q, zero))
    elif not is_one(scale) and int(unit.attr("axis", 1)) % q.rank >= _POOLED:
        return Skip("the scales vary along a pooled axis")
    else:
        most = graph.op.like(node, q)
    return graph.op.like(unit, most, scale, zero)


def _zero(graph: Graph, unit: Node, q: Value, zero: Value | None) -> Value:
    """Return the integers that are dequantised to 0, so that they broadcast to q."""
    if zero is None:
        assert q.dtype is not None
        return graph.constant(np.zeros((), DataType(q.dtype).numpy), "zero_point")
    return along_axis(graph, unit, q, zero)
