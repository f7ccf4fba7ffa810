"""x / Sqrt(mean(x * x) + epsilon) * scale  =>  RMSNormalization(x, scale)"""

from tiered import Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.normalization import norm_over_last_dims, rms_norm_pattern

_is_one = const(lambda array: bool((array == 1).all()))
_scaled = op.Mul(op.RMSNormalization(var.x, _is_one, attrs=...).bind("norm"), var.scale)


@rewrite(
    rms_norm_pattern(var.x) | _scaled,
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_rmsnorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value | None,
    epsilon: Value | None,
    norm: Node | None,
    scale: Value | None,
) -> Value | Skip:
    """Normalise the last dims by their root mean square and scale them by one operator."""
    if norm is not None and scale is not None:
        return _scale(graph, node, x, norm, scale)
    found = norm_over_last_dims(node, x, axes, epsilon)
    if isinstance(found, Skip):
        return found
    return graph.op.RMSNormalization(x, found.ones(graph), axis=found.axis, epsilon=found.epsilon)


def _scale(graph: Graph, node: Node, x: Value, norm: Node, scale: Value) -> Value | Skip:
    if x.shape is None or not x.has_rank_of(node.output):
        return Skip("the rank of x is not known, or grows")
    normed = x.shape[int(norm.attr("axis")) % len(x.shape) :]
    if scale.shape != normed or None in normed:
        return Skip("the scale is not per element")
    result: Value = graph.op.RMSNormalization(x, scale, **norm.attributes)
    return result
