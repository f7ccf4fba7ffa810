"""x + 0.0  =>  x,  x - (-0.0)  =>  x,  0.0 - x  =>  Neg(x), where no sign of a zero matters"""

from typing import Any

import numpy as np

from tiered import (
    Constant,
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
from tiered.rewriter.idioms.signs import zero_sign_matters


def _is_zero(array: np.ndarray[Any, Any]) -> bool:
    """Return whether all elements are zeros of either sign; most constants begin with another."""
    return bool((array.flat[:1] == 0).all() and (array == 0).all())


_zero = const(_is_zero, name="zero")


@rewrite(
    op.Add(var.x, _zero) | op.Sub(var.x, _zero) | op.Sub(_zero, var.x),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def eliminate_zero_addend(graph: Graph, node: Node, x: Value, zero: Constant) -> Value | Skip:
    """Drop a zero that changes at most -0.0 to 0.0; `eliminate_nop_arithmetic` drops the others.

    Of integers, `fuse_neg` drops the zero that something is taken from.
    """
    if not broadcasts_into(zero.tensor.shape, x.shape):
        return Skip("the zero may make x larger")
    if zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    if node.inputs[1] is not x or node.op_type == "Add":
        return x
    if not x.is_float:
        return Skip("not all integers have a negative")
    return graph.op.Neg(x)
