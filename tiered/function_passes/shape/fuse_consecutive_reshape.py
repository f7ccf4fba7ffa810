"""Reshape(Reshape(x, _), shape)  =>  Reshape(x, shape)"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var

Dim = int | str | None

_inner = (
    op.Reshape(var.x, ..., attrs="ignored").shared().bind("inner")
    | op.Flatten(var.x, attrs="ignored").shared().bind("inner")
    | op.Squeeze(var.x, ...).shared().bind("inner")
    | op.Unsqueeze(var.x, ...).shared().bind("inner")
)


@rewrite(op.Reshape(_inner, var.shape, allowzero=var.allowzero), opt_level=1)
def fuse_consecutive_reshape(
    graph: Graph, x: Value, shape: Value, inner: Node, allowzero: int | None
) -> Value | Skip:
    """Reshape once: only the last target shape is observable.

    A 0 in it copies a dim of the middle tensor, not of x. It stays where x has the same dim there;
    else the dim takes its place, or the one -1 that a shape may have.
    """
    if allowzero:
        return graph.op.Reshape(x, shape, allowzero=1)
    if shape.const is None:
        return Skip("shape is not a constant")
    sizes = shape.const.ravel().tolist()
    if 0 not in sizes:
        return graph.op.Reshape(x, shape)
    middle = inner.output.shape
    if middle is None:
        return Skip("a 0 in shape copies from an unknown rank")
    target = _resolved(sizes, middle, x.shape or ())
    if target is None:
        return Skip("a 0 in shape copies an unknown dim")
    return graph.op.Reshape(x, graph.constant(np.array(target), shape.name))


def _resolved(
    sizes: list[int], middle: tuple[Dim, ...], outer: tuple[Dim, ...]
) -> list[int] | None:
    """Return what each size means when x is reshaped; None where one 0 cannot be resolved."""
    target = []
    for axis, size in enumerate(sizes):
        dim = middle[axis] if axis < len(middle) else None
        stays = dim is not None and axis < len(outer) and outer[axis] == dim
        if size != 0 or stays:
            target.append(size)
        else:
            target.append(dim if isinstance(dim, int) and dim > 0 else -1)
    if target.count(-1) > 1 or (0 in target and -1 in target and -1 not in sizes):
        # Beside a dim that may be 0, a new -1 could be anything.
        return None
    return target
