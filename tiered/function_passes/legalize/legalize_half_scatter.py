"""Scatter(x, i, u) of float16 with a reduction  =>  Cast(Scatter(Cast(x), i, Cast(u)))"""

from typing import Literal

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    (op.ScatterElements | op.ScatterND)(var.x, var.indices, var.updates, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics_option="numerics",
)
def legalize_half_scatter(
    graph: Graph,
    node: Node,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    numerics: Literal["exact", "reassociating"] = "exact",
) -> Value | Skip:
    """Scatter in float what the target has no float16 or bfloat16 kernel for.

    Exact where elements are selected: without a reduction, by max and by min.

    Args:
        numerics: `reassociating` adds and multiplies in float too, which rounds once, not after
            each update.
    """
    if x.dtype not in (DataType.FLOAT16, DataType.BFLOAT16):
        return Skip("x is neither float16 nor bfloat16")
    if numerics == "exact" and node.attr("reduction") in ("add", "mul"):
        return Skip("in float, updates are rounded once")
    wide = [graph.op.Cast(value, to=int(DataType.FLOAT)) for value in (x, updates)]
    made: Value = graph.op.like(node, wide[0], indices, wide[1])
    result: Value = graph.op.Cast(made, to=int(x.dtype))
    return result
