"""Cast(Cast(x, to=b), to=c)  =>  Cast(x, to=c), where b holds every x exactly"""

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.dtype_ranges import FLOATS, INTEGERS, holds

_inner = op.Cast(var.x, to=var.middle, attrs="ignored").shared()


@rewrite(op.Cast(_inner, to=var.to, attrs="ignored"), opt_level=1)
def fuse_consecutive_cast(graph: Graph, x: Value, middle: int, to: int) -> Value | Skip:
    """Cast once: a middle dtype that keeps every value cannot be observed.

    The direct conversion must also be the one that the middle dtype gives: a negative int8 becomes
    something else as uint8 than its float does.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if not holds(middle, x.dtype):
        return Skip("the middle dtype loses values of x")
    if to == x.dtype:
        return x
    if not _converts_alike(x.dtype, middle, to):
        return Skip("the last dtype may be reached differently from x")
    return graph.op.Cast(x, to=to)


def _converts_alike(start: int, middle: int, to: int) -> bool:
    """Return whether start -> to equals start -> middle -> to for each value of start."""
    if to in FLOATS or to == DataType.BOOL:
        return True
    if to not in INTEGERS:
        # Text, float8 and 4-bit integers have rules of their own.
        return False
    if start in FLOATS:
        # What fits is truncated alike; what does not is undefined from either dtype.
        return True
    return middle in INTEGERS or holds(to, start)
