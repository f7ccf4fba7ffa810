"""Reshape(Transpose(MatMul(Softmax(MatMul(q, k') + mask), v)))  =>  MultiHeadAttention(q, k, v)"""

from tiered import Graph, Node, Skip, Value, rewrite
from tiered.idioms.attention import attention_of_heads, heads_pattern, transposed_keys


@rewrite(
    heads_pattern(),
    opt_level=3,
    required=("infer_shapes",),
    needs=["com.microsoft::MultiHeadAttention"],
    numerics="reassociating",
)
def fuse_multi_head_attention(
    graph: Graph,
    node: Node,
    queries: Node,
    keys: Value,
    v: Value,
    mask: Value | None,
    unseen: Node | None,
    before: Value | None,
    factor: Value | None,
    divisor: Value | None,
    *,
    masked: bool = False,
) -> Value | Skip:
    """Split into heads, attend and put the heads side by side at once.

    Keys and values that are in heads already, after those of the past say, are read as they are.

    Args:
        masked: also where a mask is added; at most sizes the kernel takes longer then than the
            parts.
    """
    if mask is not None and not masked:
        return Skip("with a mask the kernel is slower than the parts")
    heads = attention_of_heads(node, queries, keys, v, mask, unseen, (before, factor, divisor))
    if isinstance(heads, Skip):
        return heads
    k, v = heads.before_split or (transposed_keys(graph, heads.keys), v)
    made: Value = graph.op("com.microsoft").MultiHeadAttention(
        *(heads.q, k, v, None, None, mask), num_heads=heads.number, scale=heads.scale
    )
    return made if heads.shape is None else graph.op.Reshape(made, heads.shape)
