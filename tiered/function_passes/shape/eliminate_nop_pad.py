"""Pad(x, pads=[0, 0, ...])  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Pad(var.x, var.pads, ..., attrs="ignored"), opt_level=1)
def eliminate_nop_pad(graph: Graph, x: Value, pads: Value) -> Value | Skip:
    """Drop a Pad with pads of 0, in any mode; negative pads crop."""
    if pads.const is None:
        return Skip("pads is not a constant")
    if pads.const.any():
        return Skip("it pads or crops")
    return x
