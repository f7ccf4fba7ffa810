"""DequantizeLinear(QuantizeLinear(x, s, z), s, z)  =>  clamp(Round(x / s), least, most) * s"""

from typing import Literal

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.idioms.quotients import quotient


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
) -> Value | Skip:
    """Round to the numbers that the integers stand for, on targets without integers.

    The sum with 0 makes 0.0 of -0.0, as integers do.

    Args:
        numerics: `approximate` clamps by Clip, for targets without Where: NaN stays NaN, and does
            not become the least number.
    """
    found = quotient(graph, q, x, scale, zero)
    if isinstance(found, Skip):
        return found
    ops, rounded, least, most = graph.op, found.rounded, found.least, found.most
    if numerics == "exact":
        clamped = ops.Min(ops.Where(ops.Greater(rounded, least), rounded, least), most)
    elif least.rank == 0 and most.rank == 0:
        clamped = ops.Clip(rounded, least, most)
    else:
        return Skip("the zero points differ along an axis")
    return ops.Mul(ops.Add(clamped, np.zeros((), np.float32)), found.scale)
