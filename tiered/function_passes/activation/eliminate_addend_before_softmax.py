"""Softmax(x + c)  =>  Softmax(x), if c is the same along the axis, and so for LogSoftmax"""

from typing import Final

import numpy as np

from tiered import (
    Constant,
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    broadcasts_into,
    const,
    op,
    rewrite,
    var,
)

# Beside larger numbers x is rounded: to ten-thousandths beside 1,000 in float32, and to hundredths
# beside 16 in types of 16 bits.
_LARGEST: Final = 1e3
_LARGEST_FOR_HALVES: Final = 16

_shifted = op.Add(var.x, const(name="c")) | op.Sub(var.x, const(name="c"))


@rewrite(
    op.Softmax(_shifted, axis=var.axis) | op.LogSoftmax(_shifted, axis=var.axis),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def eliminate_addend_before_softmax(
    graph: Graph, x: Value, c: Constant, axis: int, node: Node
) -> Value | Skip:
    """Drop what is added to all exponents of a sum: it cancels in the quotient."""
    if not broadcasts_into(c.tensor.shape, x.shape):
        return Skip("the addend may make x larger")
    if x.rank is None:
        return Skip("the rank of x is not known")
    from_end = x.rank - axis if axis >= 0 else -axis
    if from_end <= c.const.ndim and c.const.shape[-from_end] != 1:
        return Skip("the addend may differ along the axis")
    is_wide = x.dtype in (DataType.FLOAT, DataType.DOUBLE)
    if not (np.abs(c.const) <= (_LARGEST if is_wide else _LARGEST_FOR_HALVES)).all():
        return Skip("beside the addend, x is rounded")
    return graph.op.like(node, x)
