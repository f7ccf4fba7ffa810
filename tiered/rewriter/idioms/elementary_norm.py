"""Normalizations in elementary operators, for targets without the operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tiered.graph.core.dtypes import DataType

if TYPE_CHECKING:
    from tiered.graph import Graph, Value

FLOATS = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BFLOAT16)


def standardized(
    graph: Graph,
    x: Value,
    axes: Sequence[int],
    epsilon: float,
    *,
    is_centred: bool = True,
) -> Value:
    """Return (x - mean(x)) / sqrt(var(x) + epsilon) along some axes, in the dtype of x.

    The variance is the mean of the squares of the differences (two passes): mean(x * x) - mean(x)^2
    of ONNX's bodies cancels for a mean that is large beside the deviation. Sixteen bits are
    computed in float.

    Args:
        graph: the graph of x.
        x: a float tensor of known dtype.
        axes: the normalised axes.
        epsilon: added to the variance.
        is_centred: False for x / sqrt(mean(x * x) + epsilon).
    """
    ops, dtype = graph.op, x.dtype
    assert dtype is not None
    is_short = dtype in (DataType.FLOAT16, DataType.BFLOAT16)
    wide = ops.Cast(x, to=int(DataType.FLOAT)) if is_short else x
    numpy = np.dtype(np.float32) if is_short else DataType(dtype).numpy
    along = graph.constant(np.array(axes, np.int64), "axes")
    apart = ops.Sub(wide, ops.ReduceMean(wide, along, keepdims=1)) if is_centred else wide
    variance = ops.ReduceMean(ops.Mul(apart, apart), along, keepdims=1)
    shifted = ops.Add(variance, graph.constant(np.array(epsilon, numpy), "epsilon"))
    normed = ops.Div(apart, ops.Sqrt(shifted))
    return ops.Cast(normed, to=int(dtype)) if is_short else normed
