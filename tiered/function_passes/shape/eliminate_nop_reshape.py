"""Reshape(x, shape of x)  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Reshape(var.x, var.shape, allowzero=var.allowzero), opt_level=1)
def eliminate_nop_reshape(
    graph: Graph, x: Value, shape: Value, allowzero: int | None
) -> Value | Skip:
    """Drop a Reshape to the shape that its operand has: 0 copies a dim, one -1 is what remains."""
    if shape.const is None:
        return Skip("shape is not a constant")
    if x.shape is None:
        return Skip("the rank of x is not known")
    target = shape.const.ravel().tolist()
    if len(target) != len(x.shape):
        return Skip("the rank changes")
    differing = [
        axis
        for axis, (size, dim) in enumerate(zip(target, x.shape, strict=True))
        if size != dim and (size != 0 or allowzero)
    ]
    if not differing:
        return x
    if len(differing) > 1 or target[differing[0]] != -1:
        return Skip("a dim changes, or is not known to stay")
    if 0 in x.shape[: differing[0]] or 0 in x.shape[differing[0] + 1 :]:
        return Skip("-1 beside a dim of 0 could be anything")
    return x
