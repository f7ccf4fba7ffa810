"""scale * s / Sqrt(mean(s * s) + epsilon), s = x + skip  =>  SkipSimplifiedLayerNormalization"""

from tiered import Constant, Graph, Node, Skip, Value, op, rewrite, same_axes, var
from tiered.rewriter.idioms.normalization import norm_epsilon, rms_norm_pattern, split_bias


@rewrite(
    op.Mul(rms_norm_pattern(var.x), var.scale),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::SkipSimplifiedLayerNormalization"],
    numerics="reassociating",
)
def fuse_skip_rmsnorm(
    graph: Graph, node: Node, x: Value, axes: Value, epsilon: Constant, scale: Value
) -> Value | Skip:
    """Add and normalise by one operator; other users of the sum read the fourth output.

    RMSNormalization without the sum exists only from opset 23.
    """
    added = x.producer
    if added is None or not added.is_op("Add") or added.graph is not graph:
        return Skip("the normalised value is not a sum")
    first, second = added.given(0), added.given(1)
    shape = x.shape
    if shape is None or None in shape or len(shape) not in (2, 3):
        return Skip("the sum is not known to have 2 or 3 dims")
    if node.output.rank != len(shape):
        return Skip("a constant adds dims to the sum")
    if not shape[-1]:
        return Skip("there is nothing to normalise")
    if first.shape != shape or second.shape != shape:
        return Skip("an addend is broadcast")
    if axes.const is None or not same_axes(axes.const.ravel(), [-1], len(shape)):
        return Skip("it is not over the last dim alone")
    number = norm_epsilon(epsilon)
    if isinstance(number, Skip):
        return number
    if scale.shape != shape[-1:]:
        return Skip("the scale is not per element")
    if scale.producer is not None:
        return Skip("the scale is computed, perhaps from the sum")
    x, bias = split_bias(first)
    skip = second
    if bias is None:
        skip, bias = split_bias(second)
    result, _, _, total = graph.op("com.microsoft").SkipSimplifiedLayerNormalization(
        x, skip, scale, bias, outputs=4, epsilon=number
    )
    graph.replace(added, [total])
    return result
