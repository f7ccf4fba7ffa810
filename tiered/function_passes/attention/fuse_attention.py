"""MatMul(Softmax(MatMul(q, k') * scale + mask), v)  =>  Attention(q, k, v, mask)"""

from tiered import (
    DataType,
    Graph,
    Skip,
    Value,
    attention_pattern,
    attention_scale,
    broadcasts_into,
    keys_as_heads,
    op,
    rewrite,
    var,
)

_weights = attention_pattern(var.q)


@rewrite(
    op.MatMul(_weights, var.v)
    # A row of which everything is masked is 0, as the operator has it too.
    | op.MatMul(op.Where(op.IsNaN(_weights), 0.0, _weights), var.v),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_attention(
    graph: Graph,
    q: Value,
    keys: Value,
    v: Value,
    mask: Value | None,
    factor: Value | None,
    divisor: Value | None,
) -> Value | Skip:
    """Attend at once.

    Rows of which everything is masked become 0, where the chain has NaN.
    """
    if q.dtype == DataType.DOUBLE:
        return Skip("for doubles the root of the scale is taken in 32 bits")
    if q.rank != 4 or keys.rank != 4 or v.rank != 4:
        return Skip("it is not of heads: batch, heads, sequence, size")
    outer = {(value.dim(0), value.dim(1)) for value in (q, keys, v)}
    if len(outer) != 1 or None in (sizes := outer.pop()):
        return Skip("the numbers of batches or heads may differ")
    if not isinstance(sizes[0], int):
        return Skip("the batch may be empty, which the kernel of onnxruntime refuses")
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    if mask is not None:
        whole = (q.dim(0), q.dim(1), q.dim(2), keys.dim(3))
        shape = mask.shape
        if shape is None or shape[-2:] != whole[2:] or None in whole[2:]:
            return Skip("the mask does not say of each query what it sees")
        if not broadcasts_into(shape, whole):
            return Skip("the mask may be larger than the scores")
    return graph.op.Attention(q, keys_as_heads(graph, keys), v, mask, scale=scale)
