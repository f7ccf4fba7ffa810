"""Clip(Clip(x, a, b), c, d)  =>  Clip(x, a', b'), also where one is a Relu, Max or Min"""

import math
from typing import Final, NamedTuple

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_clip, _relu = op.Clip(var.x, ...).bind("inner"), op.Relu(var.x).bind("inner")
_bound = const(name="bound")
_bounded = (op.Max | op.Min)(var.x, _bound).bind("inner")
_pair = (
    op.Clip(_clip | _relu | _bounded, ...)
    | op.Relu(_clip | _bounded)
    # Min(Relu(x), 6) is a part of a hard swish, which later passes look for.
    | op.Max(_clip | _relu, _bound)
    | op.Min(_clip, _bound)
)

_FOR_DOUBLES: Final = 12


class Bound(NamedTuple):
    """A bound: its number, and its operand (None: the limit of the dtype)."""

    number: float
    operand: Value | np.ndarray | None


@rewrite(_pair, opt_level=2)
def fuse_consecutive_clip(
    graph: Graph, x: Value, inner: Node, node: Node, bound: Constant | None
) -> Value | Skip:
    """Clip once, to the inner bounds clipped by the outer Clip.

    Disjoint intervals leave one number: Clip(Clip(x, 0, 1), 2, 3) is 2. A Clip returns NaN, and a
    number equal to a bound, unchanged. So no bit changes, except the sign of a zero if only a zero
    is left: this case is skipped.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    is_float = DataType(x.dtype).numpy.kind not in "iu"
    if bound is not None:
        if bound.rank != 0 and not x.has_rank_of(node.output):
            return Skip("a bound may give x more dims")
        if is_float and (bound.const == 0).any():
            return Skip("Max and Min may return a zero of either sign")
    found = [_bounds(each, x.dtype, bound) for each in (inner, node)]
    if found[0] is None or found[1] is None:
        return Skip("a bound is not a constant finite number")
    (low, high), outer = found[0], found[1]
    low = _clipped(high if high.number < low.number else low, *outer)
    high = _clipped(high, *outer)
    if low.number == high.number == 0 and is_float:
        return Skip("only a zero is left, and its sign differs")
    is_clip = "Clip" in (inner.op_type, node.op_type)
    if not is_clip and high.number == math.inf:
        # The maximum of a Clip that names none is the largest finite number.
        return graph.op.Relu(x) if low.number == 0 else graph.op.Max(x, low.operand)
    if not is_clip and x.dtype == DataType.DOUBLE and graph.opset() < _FOR_DOUBLES:
        return Skip("before opset 12 Clip has no kernel for doubles")
    result: Value = graph.op.Clip(x, low.operand, high.operand)
    return result


def _bounds(node: Node, dtype: int, bound: Constant | None) -> tuple[Bound, Bound] | None:
    """Return both bounds, None if one of them is not a constant finite number."""
    if node.op_type == "Relu":
        return Bound(0, np.zeros((), DataType(dtype).numpy)), Bound(math.inf, None)
    if bound is not None and node.op_type in ("Max", "Min"):
        if bound.const.size != 1 or not math.isfinite(bound.const.item()):
            return None
        one = Bound(bound.const.item(), bound.const.reshape(()))
        return (
            (one, Bound(math.inf, None)) if node.op_type == "Max" else (Bound(-math.inf, None), one)
        )
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
