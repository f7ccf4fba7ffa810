"""DequantizeLinear(QuantizeLinear(x, s, z), s, z)  =>  clamp(Round(x / s), least, most) * s"""

from typing import Literal

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, ranges, rewrite, var
from tiered.function_passes.lower._quotients import quotient


@rewrite(
    op.DequantizeLinear(
        op.QuantizeLinear(var.x, var.scale, opt.zero, attrs=...).shared().bind("q"),
        var.scale,
        opt.zero,
        attrs=...,
    ),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics_option="numerics",
)
def lower_qdq_pair(
    graph: Graph,
    q: Node,
    x: Value,
    scale: Value,
    zero: Value | None,
    *,
    numerics: Literal["exact", "approximate"] = "exact",
    comparisons: bool = True,
) -> Value | Skip:
    """Round to the numbers that the integers stand for, on targets without integers.

    A Clip leaves NaN as it is, which becomes the least integer, so it clamps where range analysis
    proves that there is no NaN; a comparison clamps elsewhere. The sum with 0 makes 0.0 of -0.0,
    as integers do.

    Args:
        numerics: `approximate` clamps by Clip everywhere, for targets without Where: NaN stays NaN.
        comparisons: clamp by a comparison where there may be a NaN; such pairs stay otherwise.
    """
    is_number = _is_number(x, scale)
    if numerics == "exact" and not comparisons and not is_number:
        return Skip("the data may be NaN")
    found = quotient(graph, q, x, scale, zero)
    if isinstance(found, Skip):
        return found
    ops, rounded, least, most = graph.op, found.rounded, found.least, found.most
    has_one_zero = least.rank == 0  # and most.rank, both less the same number
    if has_one_zero and (is_number or numerics == "approximate"):
        clamped = ops.Clip(rounded, least, most)
    elif numerics == "exact":
        clamped = ops.Min(ops.Where(ops.Greater(rounded, least), rounded, least), most)
    else:
        return Skip("the zero points differ along an axis")
    return ops.Mul(ops.Add(clamped, np.zeros((), np.float32)), found.scale)


def _is_number(x: Value, scale: Value) -> bool:
    """Return whether no quotient of x and the scale is NaN, whatever is fed."""
    known, steps = x.owner.model.analysis(ranges), scale.const
    is_positive = steps is not None and bool((np.isfinite(steps) & (steps > 0)).all())
    return is_positive and not known[x].may_be_nan
