"""QuantizeLinear and DequantizeLinear in elementary operators: their parameters as operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value


def is_blocked(node: Node) -> bool:
    """Return whether each block along the axis has a scale of its own."""
    return bool(node.attr("block_size", 0))


def along_axis(graph: Graph, node: Node, x: Value, parameter: Value) -> Value:
    """Return a scale or a zero point so that it broadcasts to x.

    Args:
        graph: the graph of the node.
        node: a QuantizeLinear or a DequantizeLinear.
        x: its first operand, of known rank.
        parameter: one number, or one for each index of the axis; its rank is known.
    """
    assert x.rank is not None
    if parameter.rank == 0 or (parameter.shape == (1,) and x.rank) or x.rank == 1:
        return parameter
    if x.rank == 0:
        return graph.op.Reshape(parameter, np.zeros(0, np.int64))
    axis = node.attr("axis", 1) % x.rank
    if axis == x.rank - 1:
        return parameter
    dims = np.array([-1, *[1] * (x.rank - 1 - axis)], np.int64)
    return graph.op.Reshape(parameter, dims)
