"""(x + a) + b  =>  x + (a + b), also of differences, if no constant vanishes beside the other"""

from typing import Any, Final, NamedTuple

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.constant_pairs import why_not_combined

Array = np.ndarray[Any, Any]

_MOST_RATIO: Final = 16
"""How often the smaller constant may be in the larger one: four bits of it are lost at most."""

_inner = (
    op.Add(var.x, const(name="a")) | op.Sub(var.x, const(name="a")) | op.Sub(const(name="a"), var.x)
).bind("inner")


class Line(NamedTuple):
    """sign * x + number."""

    sign: int
    number: Array


@rewrite(
    op.Add(_inner, const(name="b"))
    | op.Sub(_inner, const(name="b"))
    | op.Sub(const(name="b"), _inner),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def fuse_consecutive_add(
    graph: Graph, node: Node, inner: Node, x: Value, a: Constant, b: Constant
) -> Value | Skip:
    """Add one constant instead of two, or subtract from it.

    Constants that cancel stay: x + 1 - 1 rounds x, which some models do on purpose.
    """
    if x.dtype is None or DataType(x.dtype).numpy.kind not in "fiu":
        return Skip("constants of the dtype are not added")
    reason = why_not_combined(a, b)
    if reason is not None:
        return reason
    first, second = _line(inner, a), _line(node, b)
    together = _sum(first.number if second.sign == 1 else -first.number, second.number)
    if a.const.dtype.kind == "f" and not _keeps_both(a.const, b.const, together):
        return Skip("a constant vanishes beside the other, or they cancel")
    number = together.astype(a.const.dtype)
    if first.sign == second.sign:
        return graph.op.Add(x, number)
    return graph.op.Sub(number, x)


def _line(node: Node, constant: Constant) -> Line:
    """Return what a node computes of its other operand."""
    wide = np.float64 if constant.const.dtype.kind == "f" else constant.const.dtype
    number: Array = constant.const.astype(wide)
    if node.op_type == "Add":
        return Line(1, number)
    return Line(-1, number) if node.inputs[0] is constant else Line(1, -number)


def _sum(one: Array, other: Array) -> Array:
    """Return a sum; integers wrap, as they do in models."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(one + other)


def _keeps_both(a: Array, b: Array, together: Array) -> bool:
    """Return whether the constants are of one order of magnitude, and their sum is, too."""
    sizes = np.abs(np.broadcast_arrays(a.astype(np.float64), b.astype(np.float64)))
    largest, smallest = sizes.max(axis=0), sizes.min(axis=0)
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(together.astype(a.dtype)) & (smallest > 0)
    is_kept = (smallest * _MOST_RATIO >= largest) & (np.abs(together) * 2 >= largest)
    return bool((is_finite & is_kept).all())
