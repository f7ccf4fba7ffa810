"""Unsqueeze(DequantizeLinear(constant))  =>  DequantizeLinear(constant with more dims)"""

import numpy as np

from tiered import (
    Constant,
    Graph,
    Node,
    Skip,
    Value,
    const,
    non_negative_axes,
    op,
    opt,
    rewrite,
    var,
)
from tiered.rewriter.idioms.quantization_parts import DEQUANTIZE


@rewrite(
    op.Unsqueeze(
        DEQUANTIZE(const(name="q"), var.scale, opt.zero, attrs=...).bind("dequantize"),
        const(name="axes"),
    ),
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
)
def fuse_unsqueeze_into_dequantize(
    graph: Graph, dequantize: Node, q: Constant, scale: Value, zero: Value | None, axes: Constant
) -> Value | Skip:
    """Store the integers with the new dims; the axis of their scales moves along."""
    if not q.is_only_read_by(dequantize):
        return Skip("the integers have other consumers")
    if scale.rank is None:
        return Skip("the rank of the scale is not known")
    rank = len(q.tensor.shape)
    new = non_negative_axes(axes.const.ravel(), rank + axes.const.size) or ()
    places = [place for place in range(rank + len(new)) if place not in new]
    if len(places) != rank:
        return Skip("the axes are not valid")
    parameters: list[Value | None] = [scale, zero]
    if dequantize.attr("block_size", 0):
        # Each block has its scale: a tensor of the same rank.
        if any(value is not None and value.const is None for value in parameters):
            return Skip("the scales of blocks are not constant")
        parameters = [_widened(graph, value, new) for value in parameters]
    axis = int(dequantize.attr("axis", 1))
    # Without an axis, the operator of onnxruntime has one scale.
    is_along_axis = scale.rank > 0 and -rank <= axis < rank
    is_along_axis = is_along_axis and (not dequantize.domain or dequantize.has_attr("axis"))
    operands = (_widened(graph, q, new), *parameters)
    if is_along_axis:
        return graph.op.like(dequantize, *operands, axis=places[axis])
    return graph.op.like(dequantize, *operands)


def _widened(graph: Graph, value: Value | None, axes: tuple[int, ...]) -> Value | None:
    """Return a constant with new dims of 1; None if it is absent."""
    if value is None or value.const is None:
        return None
    return graph.constant(np.expand_dims(value.const, axes), value.name)
