"""(x - mean) / Sqrt(variance + epsilon)  =>  LayerNormalization(x, 1)"""

from tiered import Graph, Node, Skip, Value, rewrite, same_axes
from tiered.rewriter.idioms.normalization import layer_norm, layer_norm_pattern, norm_over_last_dims
from tiered.rewriter.idioms.signs import zero_sign_matters


@rewrite(
    layer_norm_pattern(),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("fuse_affine_into_layernorm",),
    may_make=["LayerNormalization"],
    numerics="reassociating",
)
def fuse_layernorm(
    graph: Graph,
    node: Node,
    x: Value,
    axes: Value,
    axes_of_mean: Value,
    epsilon: Value,
) -> Value | Skip:
    """Normalise the last dims by one operator; scale and bias follow it.

    Before opset 17 only for targets that have the operator there, as onnxruntime has.
    """
    found = norm_over_last_dims(node, x, axes_of_mean, epsilon)
    if isinstance(found, Skip):
        return found
    over, over_of_mean = axes.const, axes_of_mean.const
    if over is None or over_of_mean is None or x.rank is None:
        return Skip("the axes are not constant")
    if not same_axes(over.ravel(), over_of_mean.ravel(), x.rank):
        return Skip("mean and variance are over other axes")
    # The operator makes -0.0 of a row of zeros, or 0.0, as its kernel multiplies out.
    if zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    return layer_norm(graph, x, found.ones(graph), axis=found.axis, epsilon=found.epsilon)
