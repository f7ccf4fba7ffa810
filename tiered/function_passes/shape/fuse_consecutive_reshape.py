"""Reshape(Reshape(x, _), shape)  =>  Reshape(x, shape), also with a Cast between"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.function_passes.shape._reshaping import moved_target

_inner = (
    op.Reshape(var.x, ..., attrs="ignored").shared().bind("inner")
    | op.Flatten(var.x, attrs="ignored").shared().bind("inner")
    | op.Squeeze(var.x, ...).shared().bind("inner")
    | op.Unsqueeze(var.x, ...).shared().bind("inner")
)

_alone = (
    op.Reshape(var.x, ..., attrs="ignored").bind("inner")
    | op.Flatten(var.x, attrs="ignored").bind("inner")
    | op.Squeeze(var.x, ...).bind("inner")
    | op.Unsqueeze(var.x, ...).bind("inner")
)
_cast = op.Cast(_alone, attrs="ignored").bind("cast")


@rewrite(
    op.Reshape(_inner, var.shape, allowzero=var.allowzero)
    | op.Reshape(_cast, var.shape, allowzero=var.allowzero),
    opt_level=1,
)
def fuse_consecutive_reshape(
    graph: Graph,
    x: Value,
    shape: Value,
    inner: Node,
    allowzero: int | None,
    cast: Node | None,
) -> Value | Skip:
    """Reshape once: only the last target shape is observable.

    A 0 in it copies a dim of the intermediate tensor, not of x. It stays if x has the same dim;
    otherwise the size replaces it, or the one -1 that a shape may have.
    """
    if cast is not None and (x.dtype is None or DataType(x.dtype).numpy.isbuiltin != 1):
        return Skip("runtimes may not reshape the dtype before the Cast")
    made = _reshaped(graph, x, shape, inner, allowzero)
    if cast is None or isinstance(made, Skip):
        return made
    return graph.op.like(cast, made)


def _reshaped(
    graph: Graph, x: Value, shape: Value, inner: Node, allowzero: int | None
) -> Value | Skip:
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
    copied = [middle[axis] if axis < len(middle) else None for axis in range(len(sizes))]
    stays = [dim is not None and x.dim(axis) == dim for axis, dim in enumerate(copied)]
    target = moved_target(sizes, copied, stays)
    if target is None:
        return Skip("a 0 in shape copies an unknown dim")
    return graph.op.Reshape(x, graph.constant(np.array(target), shape.name))
