"""Tile(x, repeats)  =>  Expand(x, repeats), if only dims of 1 are repeated"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Tile(var.x, var.repeats), opt_level=2, required=("infer_shapes",))
def replace_tile_with_expand(graph: Graph, x: Value, repeats: Value) -> Value | Skip:
    """Broadcast instead of copying: operators that broadcast do without the Expand.

    An Expand to 1 keeps a dim, so the repeats are its shape.
    """
    counts = repeats.const
    if counts is None or x.rank != counts.size:
        return Skip("repeats is not a constant")
    if (counts < 1).any():
        return Skip("it empties an axis")
    if any(count > 1 and x.dim(at) != 1 for at, count in enumerate(counts.tolist())):
        return Skip("an axis may have several elements")
    return graph.op.Expand(x, repeats)
