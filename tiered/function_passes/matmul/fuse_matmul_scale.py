"""Mul(MatMul(a, Transpose(b)), alpha)  =>  FusedMatMul(a, b, alpha, transB=1)"""

import math
from collections.abc import Sequence
from typing import Any

from tiered import Graph, Node, Skip, Value, const, is_held_by_attribute, op, rewrite, var


def _of(a: Any, b: Any) -> Any:
    product = op.MatMul(a, b) | op("com.microsoft").FusedMatMul(a, b, attrs=...)
    return product.bind("product")


def _swaps(perm: Sequence[int] | None) -> bool:
    """Tell whether a permutation swaps the last two dims alone."""
    count = len(perm or ())
    return count > 1 and list(perm or ()) == [*range(count - 2), count - 1, count - 2]


def _scaled(x: Any) -> Any:
    return op.Mul(x, const(name="factor")) | op.Div(x, const(name="divisor"))


_plain = _of(var.a, var.b)


@rewrite(
    _scaled(_plain)
    | _of(_scaled(var.a), var.b)
    | _of(var.a, _scaled(var.b))
    | _of(var.a, op.Transpose(var.b, perm=_swaps))
    | _of(op.Transpose(var.a, perm=_swaps), var.b),
    opt_level=3,
    required=("infer_shapes",),
    needs=["com.microsoft::FusedMatMul"],
    numerics="reassociating",
)
def fuse_matmul_scale(
    graph: Graph,
    node: Node,
    product: Node,
    a: Value,
    b: Value,
    factor: Value | None,
    divisor: Value | None,
) -> Value | Skip:
    """Multiply, scale, and read the second factor the other way round, at once.

    The first one read so takes as long as with its Transpose, or longer.
    """
    if product.has_references:
        return Skip("the call of the function decides an attribute")
    if a.rank is None or b.rank is None or min(a.rank, b.rank) < 2:
        return Skip("a factor is not known to be a matrix, or several")
    settings = dict(product.attributes)
    scale = factor if factor is not None else divisor
    if scale is not None:
        array = scale.const
        if array is None or array.size != 1 or array.ndim > min(a.rank, b.rank):
            return Skip("the scale is not one number")
        number = float(array.item())
        if not math.isfinite(number) or number == 0:
            return Skip("the scale is 0 or not finite")
        alpha = float(settings.get("alpha", 1.0))
        settings["alpha"] = alpha * number if factor is not None else alpha / number
        if not is_held_by_attribute(settings["alpha"], a.dtype):
            return Skip("the scale is a double that no attribute holds")
    else:
        if settings.get("transBatchA") or settings.get("transBatchB"):
            return Skip("the product moves a batch dim")
        side = "transA" if product.input(0) is not a else "transB"
        is_turned = int(settings.get(side, 0))
        if side == "transA" and not is_turned:
            return Skip("the first factor is not read faster the other way round")
        settings[side] = 1 - is_turned
    result: Value = graph.op("com.microsoft").FusedMatMul(a, b, **settings)
    return result
