"""A query that attends to Concat(past, k), repeated for heads  =>  GroupQueryAttention(q, k)"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.idioms.attention import (
    attention_pattern,
    attention_scale,
    cache_of_heads,
    is_attention_mask,
    mask_values,
    split_scale,
)

_HIDING: Final = -1e38
"""Where all numbers of a mask are below it, the kernel gives zeros, and not an average."""

_weights = attention_pattern(var.q)
_seen = op.Where(op.IsNaN(_weights).bind("unseen"), 0.0, _weights)
_attended = op.MatMul(_weights, var.v) | op.MatMul(_seen, var.v)


@rewrite(
    # Of one query, heads stand side by side whichever comes first.
    op.Reshape(op.Transpose(_attended, perm=(0, 2, 1, 3)) | _attended, var.shape),
    opt_level=3,
    required=("infer_shapes",),
    needs=["com.microsoft::GroupQueryAttention"],
    numerics="reassociating",
)
def fuse_group_query_attention(
    graph: Graph,
    node: Node,
    q: Value,
    keys: Value,
    v: Value,
    mask: Value | None,
    unseen: Node | None,
    factor: Value | None,
    divisor: Value | None,
    shape: Value,
) -> Value | Skip:
    """Add a key and a value to those of the past, and let the heads of one query attend to them.

    The kernel hides from a query what comes after it, which of one query is nothing. It takes
    several only of a batch of 1, and of an empty batch none. Keys and values are read by each head
    of a group as they are.
    """
    (q, earlier), (keys, of_keys) = split_scale(q), split_scale(keys)
    if q.shape is None or len(q.shape) != 4 or q.shape[2] != 1:
        return Skip("there may be several queries, from which the kernel hides what comes later")
    batch, heads, _, size = q.shape
    if not isinstance(batch, int) or batch == 0:
        return Skip("the batch may be empty, on which the kernel fails")
    if not isinstance(heads, int) or not isinstance(size, int) or size % 8:
        return Skip("the heads are not of a known size that 8 divides")
    k_cache = cache_of_heads(keys, heads, is_transposed=True)
    v_cache = cache_of_heads(v, heads, is_transposed=False)
    if k_cache is None or v_cache is None:
        return Skip("keys and values are not added to those of the past, for the heads alone")
    pasts, news = (k_cache.past, v_cache.past), (k_cache.new, v_cache.new)
    refused = _refused_caches(pasts, news, q) or _refused_mask(mask, unseen, q, keys, k_cache.past)
    if refused is not None:
        return refused
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    whole, target = (batch, 1, heads * size), shape.const
    if node.output.shape != whole and (target is None or 0 in target[1:].tolist()):
        return Skip("the final Reshape depends on the sizes of heads")
    made, present_k, present_v = graph.op("com.microsoft").GroupQueryAttention(
        _side_by_side(graph, q),
        *(_side_by_side(graph, new) for new in news),
        *(*pasts, *_lengths(graph, batch, k_cache.past, mask)),
        *(None, None, None, mask),
        outputs=3,
        num_heads=heads,
        kv_num_heads=k_cache.past.dim(1),
        scale=scale * earlier * of_keys,
    )
    graph.replace(k_cache.node, [present_k])
    graph.replace(v_cache.node, [present_v])
    result: Value = made
    return result if node.output.shape == whole else graph.op.Reshape(made, shape)


def _refused_caches(pasts: tuple[Value, Value], news: tuple[Value, Value], q: Value) -> Skip | None:
    """Return why one key and value for each group are not known to be added to as many."""
    past, batch, size = pasts[0].shape, q.dim(0), q.dim(3)
    if past is None or past != pasts[1].shape or None in past:
        return Skip("what is past is not known to be as long for keys and values")
    groups = past[1]
    if not isinstance(groups, int) or {new.shape for new in news} != {(batch, groups, 1, size)}:
        return Skip("there is not one new key for the query")
    return None


def _refused_mask(
    mask: Value | None, unseen: Node | None, q: Value, keys: Value, past: Value
) -> Skip | None:
    """Return why the kernel may give something else where a mask hides all that a query sees.

    Args:
        mask: what is added to the scores.
        unseen: what makes 0 of rows in which everything is masked.
        q, keys: what the scores are of, [batch, heads, 1, size] and [batch, heads, size, places].
        past: the keys but for the new one, [batch, groups, places, size].
    """
    if mask is not None and not is_attention_mask(mask, (q.dim(0), q.dim(1)), (1, keys.dim(3))):
        return Skip("the mask does not say of each head what it sees")
    numbers = np.zeros(1) if mask is None else mask_values(mask)
    if numbers is None or ((numbers < _HIDING) & np.isfinite(numbers)).any():
        return Skip("where everything is hidden by a finite number, the kernel takes no average")
    if unseen is None or np.isfinite(numbers).all():
        return None
    if not isinstance(past.dim(2), int) or past.dim(2) == 0:
        return Skip("a query that sees nothing gets zeros, and from the kernel only with a past")
    if q.dtype != DataType.FLOAT:
        return Skip("a query that sees nothing gets zeros, and NaN from the kernel for halves")
    return None


def _side_by_side(graph: Graph, heads: Value) -> Value:
    """Return [batch, heads, 1, size] as [batch, 1, heads * size], before it was split if it was."""
    assert heads.static_shape is not None
    batch, number, _, size = heads.static_shape
    whole, node = (batch, 1, number * size), heads.producer
    if node is not None and node.is_op("Transpose"):
        is_moved = node.perm == (0, 2, 1, 3)
        node = node.inputs[0].producer if is_moved and node.inputs[0] is not None else None
    if node is not None and node.is_op("Reshape"):
        before = node.inputs[0]
        if before is not None and before.shape == whole:
            return before
    made: Value = graph.op.Reshape(heads, np.array(whole))
    return made


def _lengths(graph: Graph, batch: int, past: Value, mask: Value | None) -> tuple[Value, Value]:
    """Return how many keys come before the new one, int32 [batch], and how many there are."""
    op = graph.op
    one, each = graph.constant(np.array(1, np.int32)), graph.constant(np.array([batch]))
    if mask is None:
        before = op.Cast(op.Gather(op.Shape(past), np.array(2)), to=DataType.INT32)
        return op.Expand(before, each), op.Add(before, one)
    # The mask is the same in all layers: so are the lengths.
    total = op.Cast(op.Gather(op.Shape(mask), np.array(3)), to=DataType.INT32)
    return op.Expand(op.Sub(total, one), each), total
