"""BatchNormalization(x, ...)  =>  x * scale' + shift'"""

import numpy as np

from tiered import (
    DataType,
    Graph,
    Node,
    Skip,
    Value,
    batch_norm_of,
    batch_norm_pattern,
    rewrite,
    var,
)


@rewrite(
    batch_norm_pattern(var.x),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
)
def replace_bn_with_mul_add(
    graph: Graph, node: Node, x: Value, scale: Value, shift: Value
) -> Value | Skip:
    """Multiply and add, where scales can be moved on.

    Opt-in: two operators go over x twice, where the batch norm that nothing absorbed goes once.
    """
    norm = batch_norm_of(node)
    if isinstance(norm, Skip):
        return norm
    if x.rank is None or x.rank < 2 or x.dtype is None:
        return Skip("the rank or the dtype of x is not known")
    with np.errstate(over="ignore"):
        vectors = [each.astype(DataType(x.dtype).numpy) for each in (norm.factor, norm.of(0.0))]
    if not all(np.isfinite(vector.astype(np.float64)).all() for vector in vectors):
        return Skip("a factor or what is added is not finite")
    shape = (-1, *[1] * (x.rank - 2))
    factor, added = (
        graph.constant(vector.reshape(shape), value.name)
        for vector, value in zip(vectors, (scale, shift), strict=True)
    )
    return graph.op.Add(graph.op.Mul(x, factor), added)
