"""(x / c) * d  =>  x * (d / c),  c / (x / d)  =>  (c * d) / x, ..., where c and d are constants"""

from typing import Any, Final, NamedTuple

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.constant_pairs import why_not_combined

Array = np.ndarray[Any, Any]

_LARGEST: Final = 2.0**24
"""Between larger factors, and smaller than their inverses, numbers may overflow or vanish."""

_inner = (
    op.Div(var.x, const(name="a")) | op.Div(const(name="a"), var.x) | op.Mul(var.x, const(name="a"))
).bind("inner")


class Power(NamedTuple):
    """x ** exponent * factor."""

    exponent: int
    factor: Array


@rewrite(
    op.Div(_inner, const(name="b"))
    | op.Div(const(name="b"), _inner)
    | op.Mul(_inner, const(name="b"))
    | op.Reciprocal(_inner),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def fuse_consecutive_scale(
    graph: Graph, node: Node, inner: Node, x: Value, a: Constant, b: Constant | None
) -> Value | Skip:
    """Multiply or divide by one constant instead of two, which rounds once."""
    if x.dtype is None or DataType(x.dtype).numpy.kind != "f":
        return Skip("constants of the dtype are not multiplied")
    reason = why_not_combined(a) if b is None else why_not_combined(a, b)
    if reason is not None:
        return reason
    first, second = _power(inner, a), _power(node, b)
    factors = [first.factor, second.factor]
    if not all(_is_moderate(factor, a.const.dtype) for factor in factors):
        return Skip("a factor is 0, not finite or far from 1")
    factor = first.factor ** float(second.exponent) * second.factor
    if not _is_moderate(factor, a.const.dtype):
        return Skip("together the factors are far from 1")
    number = np.asarray(factor, a.const.dtype)
    if first.exponent != second.exponent:
        return graph.op.Div(number, x)
    if (number == 1).all() and x.has_rank_of(node.output):
        return x
    return graph.op.Mul(x, number)


def _power(node: Node, constant: Constant | None) -> Power:
    """Return what a node computes of its other operand."""
    if constant is None:
        return Power(-1, np.ones(()))
    factor = constant.const.astype(np.float64)
    if node.op_type == "Mul":
        return Power(1, factor)
    if node.inputs[0] is constant:
        return Power(-1, factor)
    with np.errstate(divide="ignore"):
        return Power(1, np.asarray(1 / factor))


def _is_moderate(factors: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether numbers and their inverses are far from the limits of a dtype."""
    largest = min(_LARGEST, 1 / float(np.finfo(dtype).tiny))
    sizes = np.abs(factors)
    return bool(((sizes * largest >= 1) & (sizes <= largest)).all())
