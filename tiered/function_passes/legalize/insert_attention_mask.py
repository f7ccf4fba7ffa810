"""(1 - Cast(mask)) * c  =>  Where(Not(mask), c, 0), for a mask of 0 and 1"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, const, op, rewrite, var


@rewrite(
    op.Mul(op.Sub(const(1), op.Cast(var.mask, to=var.to)), var.c),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def insert_attention_mask(
    graph: Graph, mask: Value, to: int, c: Value, *, assume_binary: bool = False
) -> Value | Skip:
    """Select the number that masks a score, instead of computing it.

    The product is affine in the mask, the selection is not: they agree for 0 and 1 only, which a
    bool is, and an integer if the user says so.

    Args:
        assume_binary: the elements of an integer mask are 0 and 1.
    """
    if c.const is None or c.const.ndim:
        return Skip("the masked value is not one constant number")
    if mask.dtype is None or (mask.dtype != DataType.BOOL and not assume_binary):
        return Skip("the mask may have elements other than 0 and 1")
    if to not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("the scores are no floats")
    dtype = DataType(to).numpy
    zero = (np.array(1, dtype) - np.array(1, dtype)) * c.const.astype(dtype)
    ops = graph.op
    kept = mask if mask.dtype == DataType.BOOL else ops.Cast(mask, to=int(DataType.BOOL))
    # onnxruntime's Where keeps the sign of a zero in its last operand only.
    return ops.Where(ops.Not(kept), c, graph.constant(zero, "kept"))
