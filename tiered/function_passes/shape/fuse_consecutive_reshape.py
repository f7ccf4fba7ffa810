"""Reshape(Reshape(x, _), shape)  =>  Reshape(x, shape)"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var

_inner = (
    op.Reshape(var.x, ..., attrs=...).shared().bind("inner")
    | op.Flatten(var.x, attrs=...).shared().bind("inner")
    | op.Squeeze(var.x, ...).shared().bind("inner")
    | op.Unsqueeze(var.x, ...).shared().bind("inner")
)


@rewrite(op.Reshape(_inner, var.shape, allowzero=var.allowzero), opt_level=1)
def fuse_consecutive_reshape(
    graph: Graph, x: Value, shape: Value, inner: Node, allowzero: int | None
) -> Value | Skip:
    """Reshape once: only the last target shape is observable.

    A 0 in it copies a dim of the middle tensor, not of x, and is replaced by that dim.
    """
    if shape.const is None:
        return Skip("shape is not a constant")
    if allowzero or 0 not in shape.const:
        return graph.op.Reshape(x, shape, allowzero=allowzero)
    middle = inner.output.shape
    if middle is None:
        return Skip("a 0 in shape copies a dim of the inner result, whose rank is not known")
    target = shape.const.copy()
    for axis, size in enumerate(target):
        dim = middle[axis] if axis < len(middle) else None
        if size == 0:
            if not isinstance(dim, int) or dim == 0:
                return Skip("a 0 in shape copies a dim of the inner result, which is not known")
            target[axis] = dim
    return graph.op.Reshape(x, graph.constant(target, shape.name))
