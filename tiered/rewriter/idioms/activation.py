"""Activations as exporters write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiered.rewriter.idioms.normalization import fits_float_attribute
from tiered.rewriter.language import const, op
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Node, Value


def swish_pattern(x: Any) -> Any:
    """Return the pattern of x * Sigmoid(alpha * x), which binds `alpha`: None where it is 1."""
    return op.Mul(x, op.Sigmoid(op.Mul(x, const(name="alpha")))) | op.Mul(x, op.Sigmoid(x))


def swish_factor(node: Node, x: Value, alpha: Value | None) -> float | Skip:
    """Return alpha of x * Sigmoid(alpha * x), or why it is not known."""
    if not x.has_rank_of(node.output):
        return Skip("a constant may give x more dims")
    if alpha is None:
        return 1.0
    if alpha.const is None or alpha.const.size != 1:
        return Skip("alpha is not one number")
    if not fits_float_attribute(alpha.const.item(), alpha.dtype):
        return Skip("alpha is a double that no attribute holds")
    return float(alpha.const.item())
