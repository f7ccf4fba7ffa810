"""Clip(Clip(x, a, b), c, d)  =>  Clip(x, a', b'), also where one of them is a Relu"""

import math
from typing import NamedTuple

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var

_pair = (
    op.Clip(op.Clip(var.x, ...).bind("inner"), ...)
    | op.Clip(op.Relu(var.x).bind("inner"), ...)
    | op.Relu(op.Clip(var.x, ...).bind("inner"))
)


class Bound(NamedTuple):
    """A bound: its number, and its operand (None: the limit of the dtype)."""

    number: float
    operand: Value | np.ndarray | None


@rewrite(_pair, opt_level=2)
def fuse_consecutive_clip(graph: Graph, x: Value, inner: Node, node: Node) -> Value | Skip:
    """Clip once, to the inner bounds clipped by the outer Clip.

    Disjoint intervals leave one number: Clip(Clip(x, 0, 1), 2, 3) is 2. A Clip returns NaN, and a
    number equal to a bound, unchanged. So no bit changes, except the sign of a zero if only a zero
    is left: this case is skipped.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    found = [_bounds(inner, x.dtype), _bounds(node, x.dtype)]
    if found[0] is None or found[1] is None:
        return Skip("a bound is not a constant finite number")
    (low, high), outer = found[0], found[1]
    low = _clipped(high if high.number < low.number else low, *outer)
    high = _clipped(high, *outer)
    if low.number == high.number == 0 and DataType(x.dtype).numpy.kind not in "iu":
        return Skip("only a zero is left, and its sign differs")
    result: Value = graph.op.Clip(x, low.operand, high.operand)
    return result


def _bounds(node: Node, dtype: int) -> tuple[Bound, Bound] | None:
    """Return both bounds, None if one of them is not a constant finite number."""
    if node.op_type == "Relu":
        return Bound(0, np.zeros((), DataType(dtype).numpy)), Bound(math.inf, None)
    bounds = []
    for name, furthest in (("min", -math.inf), ("max", math.inf)):
        operand = node.operand(name)
        if operand is None:
            bounds.append(Bound(furthest, None))
            continue
        if operand.const is None or operand.const.size != 1:
            return None
        number = operand.const.item()
        if not math.isfinite(number):
            return None
        bounds.append(Bound(number, operand))
    return bounds[0], bounds[1]


def _clipped(bound: Bound, low: Bound, high: Bound) -> Bound:
    """Return a bound clipped to an interval; a bound equal to a limit stays, as in the runtime."""
    if bound.number < low.number:
        bound = low
    return high if high.number < bound.number else bound
