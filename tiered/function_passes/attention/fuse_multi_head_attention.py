"""Reshape(Transpose(MatMul(Softmax(MatMul(q, k') + mask), v)))  =>  MultiHeadAttention(q, k, v)"""

from tiered import Graph, Node, Skip, Value, rewrite
from tiered.rewriter.idioms.attention import attention_of_heads, heads_pattern, transposed_keys


@rewrite(
    heads_pattern(),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::MultiHeadAttention"],
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
    """Split into heads, compute attention and merge the heads by one operator.

    Keys and values that are split already, for example after a cache, are used unchanged.

    Args:
        masked: also fuse if a mask is added; at most sizes the kernel is slower with one.
    """
    if mask is not None and not masked:
        return Skip("the kernel is slower with a mask")
    heads = attention_of_heads(node, queries, keys, v, mask, unseen, (before, factor, divisor))
    if isinstance(heads, Skip):
        return heads
    k, v = heads.before_split or (transposed_keys(graph, heads.keys), v)
    made: Value = graph.op("com.microsoft").MultiHeadAttention(
        *(heads.q, k, v, None, None, mask), num_heads=heads.number, scale=heads.scale
    )
    return made if heads.shape is None else graph.op.Reshape(made, heads.shape)
