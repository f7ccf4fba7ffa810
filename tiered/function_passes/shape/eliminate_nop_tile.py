"""Tile(x, repeats=[1, 1, ...])  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Tile(var.x, var.repeats), opt_level=1)
def eliminate_nop_tile(graph: Graph, x: Value, repeats: Value) -> Value | Skip:
    """Drop a Tile that repeats each axis once."""
    if repeats.const is None:
        return Skip("repeats is not a constant")
    if (repeats.const != 1).any():
        return Skip("it repeats or empties an axis")
    return x
