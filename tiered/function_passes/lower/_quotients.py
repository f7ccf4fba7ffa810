"""The rounded quotient of a QuantizeLinear, in float, and the limits of its integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.rewriter import Skip
from tiered.rewriter.idioms.quantization_parts import along_axis, is_blocked

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

_TARGETS: Final = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16)


class Quotient(NamedTuple):
    """A quotient that a QuantizeLinear clamps, before it adds the zero point.

    Attributes:
        rounded: x / scale, rounded half to even.
        least, most: the limits of the dtype, less the zero point.
        zero: the zero point in float; None if it is 0.
        scale: the scale, so that it broadcasts to x.
        dtype: of the integers.
    """

    rounded: Value
    least: Value
    most: Value
    zero: Value | None
    scale: Value
    dtype: int


def quotient(
    graph: Graph, node: Node, x: Value, scale: Value, zero: Value | None
) -> Quotient | Skip:
    """Return the quotient of a QuantizeLinear, or why it is not computed in float.

    Args:
        graph: the graph for the new nodes.
        node: the QuantizeLinear.
        x, scale, zero: its operands.
    """
    dtype = node.output.dtype
    if dtype is None or dtype not in _TARGETS:
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
    steps = along_axis(graph, node, x, scale)
    rounded = ops.Round(ops.Div(x, steps))
    least: Value = graph.constant(np.array(limits.min, np.float32), "least")
    most: Value = graph.constant(np.array(limits.max, np.float32), "most")
    number = None
    if zero is not None and not (zero.const is not None and not zero.const.any()):
        number = along_axis(graph, node, x, ops.Cast(zero, to=int(DataType.FLOAT)))
        least, most = ops.Sub(least, number), ops.Sub(most, number)
    return Quotient(rounded, least, most, number, steps, dtype)
