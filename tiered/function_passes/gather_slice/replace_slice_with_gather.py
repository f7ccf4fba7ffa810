"""Squeeze(Slice(x, i, i + 1, axis), axis)  =>  Gather(x, i, axis), and so for a Reshape"""

from typing import Final

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, const, op, opt, rewrite, same_axes, var

_INT_MAX: Final = (1 << 31) - 1

_NEGATIVE_SINCE: Final = 11
"""The opset from which Gather takes negative indices."""

_slice = op.Slice(var.x, const(name="starts"), const(name="ends"), opt.axes, opt.steps)


@rewrite(
    op.Squeeze(_slice, const(name="squeezed")) | op.Reshape(_slice, ...),
    opt_level=1,
    required=("infer_shapes",),
)
def replace_slice_with_gather(
    graph: Graph,
    x: Value,
    starts: Constant,
    ends: Constant,
    axes: Value | None,
    steps: Value | None,
    squeezed: Constant | None,
    node: Node,
) -> Value | Skip:
    """Select the one element of an axis.

    Where the index is out of range, Gather fails; so does the Squeeze, as the Slice is empty.
    """
    sizes = {each.const.size for each in (starts, ends, squeezed) if each is not None}
    if sizes != {1}:
        return Skip("it cuts or squeezes several axes")
    axis, step = 0 if axes is None else axes.number, 1 if steps is None else steps.number
    if axis is None or step is None:
        return Skip("axes or steps is not a constant")
    if step != 1:
        return Skip("the step is not 1")
    axis = int(axis)
    if squeezed is None:
        shape = x.shape
        if shape is None or None in shape:
            return Skip("the shape of x is not known")
        place = axis % len(shape)
        if node.output.shape != (*shape[:place], *shape[place + 1 :]):
            return Skip("the Reshape does more than to drop the axis")
    elif not same_axes([axis], squeezed.const.ravel().tolist(), x.rank):
        return Skip("another axis is squeezed")
    index = _index(x.dim(axis), starts.const.item(), ends.const.item())
    if isinstance(index, Skip):
        return index
    if index < 0 and graph.opset() < _NEGATIVE_SINCE:
        return Skip("before opset 11, no index is negative")
    return graph.op.Gather(x, np.array(index, np.int64), axis=axis)


def _index(dim: int | str | None, start: int, end: int) -> int | Skip:
    """Return the index of the one element from start to end."""
    if isinstance(dim, int):
        taken = range(dim)[start:end]
        return taken[0] if len(taken) == 1 else Skip("it does not take one element")
    if end == start + 1 and end != 0:
        return start
    if start == -1 and end >= _INT_MAX:
        return start
    return Skip("the number of elements is not known")
