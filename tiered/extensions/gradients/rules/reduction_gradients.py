"""Gradients of reductions, and of the largest elements."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.factors import without_each
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph.core.dtypes import float_info

_MAX_BROADCASTS_SINCE = 8


class _Reduced:
    """A reduction with its output and gradient in the rank of the operand.

    Attributes:
        axes: the reduced axes; those that are computed are known at run time only.
    """

    def __init__(self, step: Step) -> None:
        self.x = step.x
        self.axes = _reduced_axes(step)
        self._keeps = bool(step.node.attr("noop_with_empty_axes", 0))
        self.y, self.g = self._kept(step, step.y), self._kept(step, step.g)

    def _kept(self, step: Step, reduced: Expr) -> Expr:
        """Return a value with the reduced axes, of size 1."""
        if step.node.attr("keepdims"):
            return reduced
        if not isinstance(self.axes, Expr):
            return reduced.unsqueeze(self.axes)
        shape, ones = self.x.call("Shape", self.x), self.axes.ones()
        return reduced.reshape(shape.call("ScatterElements", shape, self.axes, ones, axis=0))

    def spread(self, part: Expr) -> Expr:
        """Return a value of reduced shape, repeated along the reduced axes."""
        return part.call("Expand", part, self.x.shape())

    def total(self, x: Expr, reduction: str = "ReduceSum") -> Expr:
        """Return the sums, or another reduction, along the reduced axes, which are kept."""
        if isinstance(self.axes, Expr):
            keeps = int(self._keeps)
            return x.call(reduction, x, self.axes, keepdims=1, noop_with_empty_axes=keeps)
        return x.call(reduction, x, [*self.axes], keepdims=1) if self.axes else x

    def count(self) -> Expr:
        """Return the number of elements that each output reduces, in the dtype of x."""
        x, y = self.x, self.y
        return x.call("Size", x).cast(x.dtype) / x.call("Size", y).cast(x.dtype)


def _reduced_axes(step: Step) -> Sequence[int] | Expr:
    if step.has(1):
        operand = step.operand(1)
        if operand.value.const is None and operand.value.dim(0) != 0:
            return operand
    axes = step.axes(1) if step.has(1) and step.operand(1).value.dim(0) != 0 else None
    if axes or step.node.attr("noop_with_empty_axes", 0):
        return axes or []
    return range(step.x.rank)


@gradient_rule("ReduceSum")
def reduce_sum(step: Step) -> Sequence[Expr | None]:
    """dx = g, repeated"""
    reduced = _Reduced(step)
    return (reduced.spread(reduced.g),)


@gradient_rule("ReduceMean")
def reduce_mean(step: Step) -> Sequence[Expr | None]:
    """dx = g / n, repeated, for n elements"""
    reduced = _Reduced(step)
    return (reduced.spread(reduced.g / reduced.count()),)


@gradient_rule("ReduceSumSquare")
def reduce_sum_square(step: Step) -> Sequence[Expr | None]:
    """dx = 2 g x"""
    reduced = _Reduced(step)
    return (2 * reduced.g * step.x,)


@gradient_rule("ReduceL1")
def reduce_l1(step: Step) -> Sequence[Expr | None]:
    """dx = g sign(x)"""
    reduced = _Reduced(step)
    return (reduced.g * step.x.call("Sign", step.x),)


@gradient_rule("ReduceL2")
def reduce_l2(step: Step) -> Sequence[Expr | None]:
    """dx = g x / y, and 0 where y = 0"""
    reduced = _Reduced(step)
    is_zero = reduced.y.equals(0.0)
    norm = is_zero.select(reduced.y.ones(), reduced.y)
    return (reduced.g * (step.x / norm),)


@gradient_rule("ReduceLogSum")
def reduce_log_sum(step: Step) -> Sequence[Expr | None]:
    """dx = g / exp(y), repeated"""
    reduced = _Reduced(step)
    return (reduced.spread(reduced.g * step.y.call("Exp", -reduced.y)),)


@gradient_rule("ReduceLogSumExp")
def reduce_log_sum_exp(step: Step) -> Sequence[Expr | None]:
    """dx = g exp(x - y), and 0 where all operands are -Inf (from opset 8 on)"""
    reduced = _Reduced(step)
    y = reduced.y
    if y.graph.opset() >= _MAX_BROADCASTS_SINCE:
        # -Inf - -Inf is NaN; no finite number is below the least.
        y = y.call("Max", y, float(float_info(y.dtype.numpy).min))
    return (reduced.g * step.x.call("Exp", step.x - y),)


@gradient_rule("ReduceMax", "ReduceMin")
def reduce_extreme(step: Step) -> Sequence[Expr | None]:
    """dx = g where x = y; elements that are equal share it in equal parts"""
    reduced = _Reduced(step)
    chosen = step.x.equals(reduced.y).cast(step.x.dtype)
    number = reduced.total(chosen)
    return (chosen * (reduced.g / number.call("Max", number, 1.0)),)


@gradient_rule("ReduceProd")
def reduce_prod(step: Step) -> Sequence[Expr | None]:
    """dx = g times the product of the other elements, also where some are 0"""
    reduced, x = _Reduced(step), step.x
    (others,) = without_each(
        [x], lambda each: reduced.total(each, "ReduceProd"), reduced.total, [lambda part: part]
    )
    return (reduced.g * others,)


@gradient_rule("TopK")
def top_k(step: Step) -> Sequence[Expr | None]:
    """dx = g at the indices of the largest elements, else 0"""
    indices = step.outputs[1]
    if indices is None:
        raise step.error("its indices are no output")
    axis = int(step.node.attr("axis"))
    zeros = step.x.zeros()
    return zeros.call("ScatterElements", zeros, indices, step.g, axis=axis), None
