"""Reduce(x) over no axes, or over dims of 1  =>  x"""

import functools
import operator
from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var

# The others compute something of each single element: its absolute value, its square, a logarithm.
_reduce = functools.reduce(
    operator.or_,
    (
        getattr(op, f"Reduce{kind}")(
            var.x, opt.axes, keepdims=var.keepdims, noop_with_empty_axes=var.noop
        )
        for kind in ("Max", "Mean", "Min", "Prod", "Sum")
    ),
)

_SMALL: Final = (DataType.INT32, DataType.UINT32)
# A sum begins with 0, which makes +0.0 of -0.0; onnxruntime sums and multiplies int64 in floats.
_KEPT: Final = {
    "ReduceMean": _SMALL,
    "ReduceProd": (DataType.DOUBLE, DataType.FLOAT, DataType.FLOAT16, *_SMALL),
    "ReduceSum": _SMALL,
}


@rewrite(_reduce, opt_level=2)
def eliminate_nop_reduce(
    graph: Graph, x: Value, axes: Value | None, keepdims: int, noop: int | None, node: Node
) -> Value | Skip:
    """Drop a reduction of single elements; where their dims go too, that is a Squeeze."""
    numbers = None if axes is None else axes.const
    if axes is not None and numbers is None:
        return Skip("axes is not a constant")
    if numbers is None or not numbers.size:
        if noop:
            return x
        if x.rank is None:
            return Skip("the rank of x is not known")
        places = [*range(x.rank)]
    else:
        places = numbers.ravel().tolist()
    if any(x.dim(axis) != 1 for axis in places):
        return Skip("a reduced dim is not known to be 1")
    if node.op_type in _KEPT and x.dtype not in _KEPT[node.op_type]:
        return Skip("single-element results may differ in this dtype")
    if keepdims or not places:
        return x
    # Before opset 11 onnx's inference wants the axes of a Squeeze in order.
    ordered = places if graph.opset() >= 11 else sorted(places)
    return graph.op.Squeeze(x, np.array(ordered, np.int64))
