"""(x - mean) / Sqrt(variance + epsilon) * scale + bias  =>  LayerNormalization(x, scale, bias)"""

import numpy as np

from tiered import (
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    broadcasts_into,
    const,
    non_negative_axes,
    op,
    rewrite,
    same_axes,
    var,
)

_centred = op.Sub(var.x, op.ReduceMean(var.x, var.axes))
_variance = op.ReduceMean(
    op.Pow(_centred, 2.0) | op.Mul(_centred, _centred), var.axes_of_squares
)
_shifted = op.Add(_variance, const(name="epsilon"))
_normed = (
    op.Div(_centred, op.Sqrt(_shifted))
    | op.Mul(_centred, op.Reciprocal(op.Sqrt(_shifted)) | op.Div(1.0, op.Sqrt(_shifted)))
    | op.Mul(_centred, op.Pow(_shifted, -0.5))
)
_is_one = const(lambda array: bool((array == 1).all()))
_scaled = op.Mul(op.LayerNormalization(var.x, _is_one, attrs=...).bind("norm"), var.scale)
_biased = op.Add(op.LayerNormalization(var.x, var.scale, attrs=...).bind("norm"), var.bias)


@rewrite(
    _normed | _scaled | _biased,
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_layernorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value | None,
    axes_of_squares: Value | None,
    epsilon: Value | None,
    norm: Node | None,
    scale: Value | None,
    bias: Value | None,
) -> Value | Skip:
    """Normalise the last dims at once; then what it is multiplied with, and what is added to it."""
    if norm is not None:
        return _affine(graph, node, x, norm, scale, bias)
    assert axes is not None
    assert axes_of_squares is not None
    assert epsilon is not None
    assert epsilon.const is not None
    if axes.const is None or axes_of_squares.const is None:
        return Skip("the axes are not constant")
    if x.rank is None or x.rank != node.output.rank:
        return Skip("the rank of x is not known, or grows")
    over = non_negative_axes(axes.const.ravel(), x.rank)
    if over is None or sorted(over) != list(range(x.rank - len(over), x.rank)) or not over:
        return Skip("it is not over the last dims")
    if not same_axes(over, axes_of_squares.const.ravel(), x.rank):
        return Skip("mean and variance are over other axes")
    if epsilon.const.size != 1 or not 0 < epsilon.const.item() < np.inf:
        return Skip("epsilon is not one positive number")
    if x.dtype is None or not DataType(x.dtype).is_float:
        return Skip("x is no float")
    sizes = x.shape[min(over) :] if x.shape is not None else ()
    if not all(isinstance(size, int) for size in sizes):
        return Skip("the size of what is normalised is not known")
    ones = graph.constant(np.ones(sizes, DataType(x.dtype).numpy), "scale")
    result: Value = graph.op.LayerNormalization(
        x, ones, axis=-len(over), epsilon=float(epsilon.const.item())
    )
    return result


def _affine(
    graph: Graph, node: Node, x: Value, norm: Node, scale: Value | None, bias: Value | None
) -> Value | Skip:
    """Take in what a layer norm is multiplied with, or what is added to it."""
    assert scale is not None
    if norm.has_references:
        return Skip("the call of the function decides an attribute")
    if x.rank is None or x.rank != node.output.rank:
        return Skip("the rank of x is not known, or grows")
    normed = int(norm.attr("axis")) % x.rank
    wanted = None if x.shape is None else x.shape[normed:]
    operands = []
    for operand in (scale, bias):
        fitted = operand if operand is None else _fitted(graph, operand, wanted)
        if operand is not None and fitted is None:
            return Skip("what it is multiplied with, or added, is not one number an element")
        operands.append(fitted)
    result: Value = graph.op.LayerNormalization(x, *operands, **norm.attributes)
    return result


def _fitted(
    graph: Graph, operand: Value, wanted: tuple[int | str | None, ...] | None
) -> Value | None:
    """Return an operand in the shape of what is normalised, None where it has no such shape."""
    if wanted is None or operand.shape is None:
        return None
    if operand.shape == wanted and None not in wanted:
        return operand
    rank = len(wanted)
    outer, inner = operand.shape[: max(len(operand.shape) - rank, 0)], operand.shape[-rank:]
    array = operand.const
    if array is None or any(dim != 1 for dim in outer) or not broadcasts_into(inner, wanted):
        return None
    sizes = [dim for dim in wanted if isinstance(dim, int)]
    if len(sizes) != rank:
        return None
    whole = np.broadcast_to(array.reshape(array.shape[len(outer) :]), sizes)
    return graph.constant(np.ascontiguousarray(whole), operand.name)
