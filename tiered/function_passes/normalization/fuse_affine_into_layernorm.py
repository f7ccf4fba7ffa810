"""LayerNormalization(x, 1) * scale + bias  =>  LayerNormalization(x, scale, bias)"""

import numpy as np

from tiered import Graph, Node, Skip, Value, broadcasts_into, const, op, rewrite, var
from tiered.graph.core.types import Shape
from tiered.rewriter.idioms.normalization import layer_norm

_is_one = const(lambda array: bool((array == 1).all()))
_scaled = op.Mul(op.LayerNormalization(var.x, _is_one, attrs=...).bind("norm"), var.scale)
_biased = op.Add(op.LayerNormalization(var.x, var.scale, attrs=...).bind("norm"), var.bias)


@rewrite(
    _scaled | _biased,
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_affine_into_layernorm(
    graph: Graph, node: Node, x: Value, norm: Node, scale: Value, bias: Value | None
) -> Value | Skip:
    """Multiply by the scale and add the bias inside the norm.

    The scale goes into a norm with scale 1, the bias into a norm without one.
    """
    if x.shape is None or not x.has_rank_of(node.output):
        return Skip("the rank of x is not known, or grows")
    normed = x.shape[int(norm.attr("axis")) % len(x.shape) :]
    operands = [
        operand if operand is None else _fitted(graph, operand, normed) for operand in (scale, bias)
    ]
    if operands[0] is None or (bias is not None and operands[1] is None):
        return Skip("scale or bias is not per element")
    return layer_norm(graph, x, *operands, **norm.attributes)


def _fitted(graph: Graph, operand: Value, wanted: Shape) -> Value | None:
    """Return an operand in the shape of the normalised dims; None if it does not fit them."""
    if operand.shape is None:
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
