"""Gradients of arithmetic with broadcasting: results have the shape of the output."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule


@gradient_rule("Add", "Sum", broadcasts=True)
def add(step: Step) -> Sequence[Expr | None]:
    """dx = g for each operand"""
    return [step.g] * len(step.operands)


@gradient_rule("Sub", broadcasts=True)
def sub(step: Step) -> Sequence[Expr | None]:
    """da = g, db = -g"""
    return step.g, -step.g if step.wants(1) else None


@gradient_rule("Mul", broadcasts=True)
def mul(step: Step) -> Sequence[Expr | None]:
    """da = g b, db = g a"""
    a, b, g = step.x, step.operand(1), step.g
    return g * b if step.wants(0) else None, g * a if step.wants(1) else None


@gradient_rule("Div", broadcasts=True)
def div(step: Step) -> Sequence[Expr | None]:
    """da = g / b, db = -g y / b"""
    b = step.operand(1)
    da = step.g / b
    return da, -(da * step.y) if step.wants(1) else None


@gradient_rule("Pow", broadcasts=True)
def power(step: Step) -> Sequence[Expr | None]:
    """da = g b a^(b - 1), and 0 where b = 0; db = g y log(a), and 0 where a = 0 and b >= 0"""
    a, b, g = step.x, step.operand(1), step.g
    exponent = b.cast(a.dtype)
    da = db = None
    if step.wants(0):
        slope = exponent * a ** (exponent - 1)
        is_flat = exponent.equals(0.0)
        da = is_flat.select(g.zeros(), g * slope)
    if step.wants(1):
        is_zero = a.equals(0.0).both(exponent.less(0.0).negated())
        # The logarithm of 1 in place of 0: an Inf would become NaN in the next gradient.
        base = is_zero.select(a.ones(), a)
        db = (g * step.y * a.call("Log", base)).cast(b.dtype)
    return da, db


@gradient_rule("Mean", broadcasts=True)
def mean(step: Step) -> Sequence[Expr | None]:
    """dx = g / n for each of n operands"""
    share = step.g / len(step.operands)
    return [share] * len(step.operands)


@gradient_rule("Max", "Min", broadcasts=True)
def extreme(step: Step) -> Sequence[Expr | None]:
    """dx = g where x = y; operands that are equal share it in equal parts"""
    if len(step.operands) == 1:
        return (step.g,)
    y = step.y
    places = range(len(step.operands))
    chosen = [step.operand(at).equals(y).cast(y.dtype) for at in places]
    number = chosen[0].call("Sum", *chosen)
    # NaN is not equal to itself: then no operand is chosen, and the number may be 0.
    share = step.g / number.call("Max", number, 1.0)
    return [share * chosen[at] if step.wants(at) else None for at in places]


@gradient_rule("Mod", broadcasts=True)
def mod(step: Step) -> Sequence[Expr | None]:
    """da = g, db = -g (a - y) / b: the quotient is constant between its jumps"""
    a, b, g = step.x, step.operand(1), step.g
    return g, -(g * ((a - step.y) / b)) if step.wants(1) else None


@gradient_rule("Where", broadcasts=True)
def where(step: Step) -> Sequence[Expr | None]:
    """dx = g where the condition holds, dy = g where it does not"""
    condition, g = step.x, step.g
    dx = condition.select(g, 0.0) if step.wants(1) else None
    dy = condition.select(g.zeros(), g) if step.wants(2) else None
    return None, dx, dy
