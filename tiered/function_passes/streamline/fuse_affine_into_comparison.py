"""Greater(x * c, k)  =>  Greater(x, k / c), also Div, Add, Sub, and other comparisons"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tiered import Graph, Node, Skip, Value, broadcasts_into, const, op, rewrite
from tiered.function_passes.streamline._monotone import FLOATS, after, before, least_reaching
from tiered.rewriter.idioms.elementwise.affine import STEP

_COMPARISONS: Final = op.Greater | op.GreaterOrEqual | op.Less | op.LessOrEqual
_MIRRORED: Final[Mapping[str, str]] = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual",
    "Less": "Greater", "LessOrEqual": "GreaterOrEqual",
}  # fmt: skip
_k = const(name="k")


@rewrite(
    _COMPARISONS(STEP, _k) | _COMPARISONS(_k, STEP),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def fuse_affine_into_comparison(
    graph: Graph, node: Node, step: Node, x: Value, c: Value, k: Value
) -> Value | Skip:
    """Compare with the number at which the result changes.

    The step keeps the order of numbers after rounding, or reverses it if a factor is negative, so
    that all results are equal.
    """
    assert c.const is not None
    assert k.const is not None
    if x.dtype not in FLOATS:
        return Skip("x is neither float32 nor float64")
    is_scale, array, bound = step.op_type in ("Div", "Mul"), c.const, k.const
    if not np.isfinite(array).all() or (is_scale and not array.all()):
        return Skip("the step does not keep the order of numbers")
    if not broadcasts_into(c.shape, x.shape):
        return Skip("the constant may change the shape of x")
    kind = node.op_type if node.input(1) is k else _MIRRORED[node.op_type]
    if is_scale and (array < 0).any():
        if (array > 0).any():
            return Skip("factors have both signs")
        kind, array, bound = _MIRRORED[kind], -array, -bound
    limit = _limit(kind, step.op_type, array, bound)
    if np.isnan(limit).any():
        return Skip("no number reaches the bound, or all do")
    return graph.op.named(kind)(x, graph.constant(limit, k.name))


def _limit(kind: str, op_type: str, c: NDArray[Any], bound: NDArray[Any]) -> NDArray[Any]:
    """Return the number to compare x with instead; NaN where there is none."""
    if kind in ("GreaterOrEqual", "Less"):
        return least_reaching(op_type, c, bound)
    above = np.where(np.isinf(bound) & (bound > 0), np.array(np.nan, bound.dtype), after(bound))
    least = least_reaching(op_type, c, above)
    return np.where(least == -np.inf, np.array(np.nan, bound.dtype), before(least))
