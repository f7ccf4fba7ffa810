"""Products without one of their factors, also where some factors are 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tiered.extensions.gradients.expression import Expr


def without_each(
    factors: Sequence[Expr],
    multiply: Callable[..., Expr],
    add: Callable[..., Expr],
    spread: Sequence[Callable[[Expr], Expr]],
) -> list[Expr]:
    """Return, for each element of some factors, the product of the others.

    Args:
        factors: tensors of factors.
        multiply, add: return the products and the sums of tensors like the factors.
        spread: for each tensor of factors, returns the result that each factor is part of.
    """
    is_zero = [each.equals(0.0) for each in factors]
    others = [zero.select(each.ones(), each) for zero, each in zip(is_zero, factors, strict=True)]
    product = multiply(*others)
    zeros = add(*(zero.cast(product.dtype) for zero in is_zero))
    found = []
    for zero, other, part in zip(is_zero, others, spread, strict=True):
        whole, count = part(product), part(zeros)
        without_zero = count.equals(0.0).select(whole / other, 0.0)
        found.append(zero.both(count.equals(1.0)).select(whole, without_zero))
    return found
