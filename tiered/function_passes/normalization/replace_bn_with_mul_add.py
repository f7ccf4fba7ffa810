"""BatchNormalization(x, ...)  =>  x * scale' + shift'"""

from tiered import Graph, Node, Skip, Value, rewrite, var
from tiered.rewriter.idioms.normalization import batch_norm_of, batch_norm_pattern


@rewrite(
    batch_norm_pattern(var.x),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    legalizes=True,
    numerics="reassociating",
)
def replace_bn_with_mul_add(
    graph: Graph, node: Node, x: Value, scale: Value, shift: Value
) -> Value | Skip:
    """Multiply and add, so that other passes can move the scale.

    Opt-in: two operators read x twice, but a batch norm that no pass fused reads it once.
    """
    norm = batch_norm_of(node)
    if isinstance(norm, Skip):
        return norm
    if x.rank is None or x.rank < 2 or x.dtype is None:
        return Skip("the rank or the dtype of x is not known")
    vectors = norm.as_product_and_sum(x.dtype)
    if isinstance(vectors, Skip):
        return vectors
    shape = (-1, *[1] * (x.rank - 2))
    factor, added = (
        graph.constant(vector.reshape(shape), value.name)
        for vector, value in zip(vectors, (scale, shift), strict=True)
    )
    return graph.op.Add(graph.op.Mul(x, factor), added)
