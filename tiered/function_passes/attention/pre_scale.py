"""MatMul(q, k') * scale  =>  MatMul(q * scale, k'), if q has fewer elements than the scores"""

from tiered import Graph, Node, Skip, Value, rewrite, var
from tiered.rewriter.idioms.attention import attention_pattern, attention_scale


@rewrite(
    attention_pattern(var.q).bind("softmax"),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def pre_scale(
    graph: Graph,
    softmax: Node,
    q: Value,
    keys: Value,
    mask: Value | None,
    factor: Value | None,
    divisor: Value | None,
    *,
    always: bool = False,
) -> Value | Skip:
    """Scale the queries of an attention instead of its scores.

    In float16 this makes the scores overflow later and small queries underflow earlier.

    Args:
        always: also with no fewer elements in the queries than in the scores, or dynamic dims.
    """
    if factor is None and divisor is None:
        return Skip("the scores are not scaled")
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    if q.rank is None or q.rank != keys.rank:
        return Skip("ranks of queries and keys may differ")
    size, length = q.dim(-1), keys.dim(-1)
    if not always:
        if not isinstance(size, int) or not isinstance(length, int):
            return Skip("head size and sequence length are not known")
        if length <= size:
            return Skip("queries are not smaller than scores")
    scaled = graph.op.Div(q, divisor) if factor is None else graph.op.Mul(q, factor)
    scores = graph.op.MatMul(scaled, keys)
    if mask is not None:
        scores = graph.op.Add(scores, mask)
    return graph.op.Softmax(scores, axis=softmax.attr("axis"))
