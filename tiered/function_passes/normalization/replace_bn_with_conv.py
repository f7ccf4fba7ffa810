"""BatchNormalization(x, ...)  =>  Conv(x, scale', shift', group=channels), kernel size 1"""

from tiered import DataType, Graph, Node, Skip, Value, rewrite, var
from tiered.rewriter.idioms.normalization import batch_norm_of, batch_norm_pattern


@rewrite(
    batch_norm_pattern(var.x),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def replace_bn_with_conv(
    graph: Graph, node: Node, x: Value, scale: Value, shift: Value
) -> Value | Skip:
    """Scale and shift each channel by a depthwise convolution.

    Opt-in: for targets with convolutions but without BatchNormalization.
    """
    norm = batch_norm_of(node)
    if isinstance(norm, Skip):
        return norm
    if x.shape is None or len(x.shape) < 3 or x.dtype is None:
        return Skip("spatial dims or dtype are not known")
    if x.dtype == DataType.DOUBLE:
        return Skip("Conv has no kernel for doubles")
    if 0 in x.shape[1:]:
        return Skip("onnxruntime rejects convolution of empty images")
    vectors = norm.as_product_and_sum(x.dtype)
    if isinstance(vectors, Skip):
        return vectors
    spatial = [1] * (len(x.shape) - 2)
    weight = graph.constant(vectors[0].reshape(-1, 1, *spatial), scale.name)
    bias = graph.constant(vectors[1], shift.name)
    return graph.op.Conv(x, weight, bias, kernel_shape=spatial, group=len(vectors[0]))
