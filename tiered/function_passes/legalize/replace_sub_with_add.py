"""Sub(a, b)  =>  Add(a, -b)"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.comparison import is_integer


@rewrite(op.Sub(var.a, var.b), opt_level=None, required=("infer_shapes",), legalizes=True)
def replace_sub_with_add(graph: Graph, a: Value, b: Value) -> Value | Skip:
    """Add what is negated: a constant as another constant, other operands by Neg.

    The same bits: a - b is a + (-b) for every float, zeros and infinities included.
    """
    if b.dtype is None or is_integer(b.dtype):
        return Skip("b is not of floats")
    if b.const is None:
        negated = graph.op.Neg(b)
    else:
        array = np.negative(b.const).astype(DataType(b.dtype).numpy)
        negated = graph.constant(array, b.name)
    result: Value = graph.op.Add(a, negated)
    return result
