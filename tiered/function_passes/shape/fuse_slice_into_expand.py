"""Slice(Expand(x, shape), ...)  =>  Expand(x, smaller shape), and so for Gather"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.selection import selection_of

_expand = op.Expand(var.x, ...)


@rewrite(
    op.Gather(_expand, var.indices, axis=var.axis)
    | op.Slice(_expand, var.starts, var.ends, opt.axes, opt.steps),
    opt_level=2,
    required=("infer_shapes",),
)
def fuse_slice_into_expand(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Repeat elements fewer times, where the selection is among equal ones only."""
    selection = selection_of(node)
    if isinstance(selection, Skip):
        return selection
    wide, result = node.given(0), node.output.static_shape
    if wide.rank is None or x.rank is None or result is None:
        return Skip("a shape is not known")
    shift = wide.rank - x.rank
    places = [at - shift for at in selection.axes if at >= shift]
    if any(x.dim(at) != 1 for at in places):
        return Skip("it selects among different elements")
    if selection.drops and places:
        x = graph.op.Squeeze(x, np.array(places, np.int64))
    return x if x.static_shape == result else graph.op.Expand(x, np.array(result, np.int64))
