"""(x - mean) / Sqrt(variance + epsilon) * scale + bias  =>  LayerNormalization(x, scale, bias)"""

import numpy as np

from tiered import Graph, Node, Skip, Value, broadcasts_into, const, op, rewrite, same_axes, var
from tiered.idioms.normalization import layer_norm_pattern, norm_over_last_dims

_is_one = const(lambda array: bool((array == 1).all()))
_scaled = op.Mul(op.LayerNormalization(var.x, _is_one, attrs=...).bind("norm"), var.scale)
_biased = op.Add(op.LayerNormalization(var.x, var.scale, attrs=...).bind("norm"), var.bias)


@rewrite(
    layer_norm_pattern() | _scaled | _biased,
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_layernorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value | None,
    axes_of_mean: Value | None,
    epsilon: Value | None,
    norm: Node | None,
    scale: Value | None,
    bias: Value | None,
) -> Value | Skip:
    """Normalise the last dims by one operator, then fold a scale and a bias into it.

    The three patterns are the steps: the chain, a scale after a norm with scale 1, and a bias
    after a norm without one.
    """
    if norm is not None and scale is not None:
        return _affine(graph, node, x, norm, scale, bias)
    found = norm_over_last_dims(node, x, axes_of_mean, epsilon)
    if isinstance(found, Skip):
        return found
    over = None if axes is None else axes.const
    over_of_mean = None if axes_of_mean is None else axes_of_mean.const
    if over is None or over_of_mean is None or x.rank is None:
        return Skip("the axes are not constant")
    if not same_axes(over.ravel(), over_of_mean.ravel(), x.rank):
        return Skip("mean and variance are over other axes")
    return graph.op.LayerNormalization(
        x, found.ones(graph), axis=found.axis, epsilon=found.epsilon
    )


def _affine(
    graph: Graph, node: Node, x: Value, norm: Node, scale: Value, bias: Value | None
) -> Value | Skip:
    """Fold a scale or a bias after a layer norm into it."""
    if x.rank is None or not x.has_rank_of(node.output):
        return Skip("the rank of x is not known, or grows")
    normed = int(norm.attr("axis")) % x.rank
    wanted = None if x.shape is None else x.shape[normed:]
    operands = []
    for operand in (scale, bias):
        fitted = operand if operand is None else _fitted(graph, operand, wanted)
        if operand is not None and fitted is None:
            return Skip("scale or bias is not per element")
        operands.append(fitted)
    result: Value = graph.op.LayerNormalization(x, *operands, **norm.attributes)
    return result


def _fitted(
    graph: Graph, operand: Value, wanted: tuple[int | str | None, ...] | None
) -> Value | None:
    """Return an operand in the shape of the normalised dims; None if it does not fit them."""
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
