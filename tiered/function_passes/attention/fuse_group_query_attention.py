"""A query that attends to Concat(past, k), repeated for heads  =>  GroupQueryAttention(q, k)"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.attention import (
    attention_pattern,
    attention_scale,
    cache_of_heads,
    is_attention_mask,
    mask_values,
    may_hide_rows,
    nan_of_hidden_rows,
    split_scale,
)

_HIDING: Final = -1e38
"""If all elements of a mask row are below this, the kernel returns zeros, not an average."""

_weights = attention_pattern(var.q)
_seen = op.Where(op.IsNaN(_weights).bind("unseen"), 0.0, _weights)
_attended = op.MatMul(_weights, var.v) | op.MatMul(_seen, var.v)


@rewrite(
    # With one query, the order of heads and sequence does not matter.
    op.Reshape(op.Transpose(_attended, perm=(0, 2, 1, 3)) | _attended, var.shape),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::GroupQueryAttention"],
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
    """Append a key and a value to the cache, and compute the attention of one query per head.

    The kernel masks causally, which has no effect on a single query. It supports several queries
    only for a batch of 1, and no empty batch. All heads of a group read the same keys and values.
    A query that sees nothing is NaN in the chain, and zeros in the kernel: there, NaN is added.
    """
    (q, earlier), (keys, of_keys) = split_scale(q), split_scale(keys)
    if q.shape is None or len(q.shape) != 4 or q.shape[2] != 1:
        return Skip("the kernel masks causally between several queries")
    batch, heads, _, size = q.shape
    if not isinstance(batch, int) or batch == 0:
        return Skip("the kernel fails on an empty batch")
    if not isinstance(heads, int) or not isinstance(size, int) or size % 8:
        return Skip("8 does not divide the head size")
    k_cache = cache_of_heads(keys, heads, is_transposed=True)
    v_cache = cache_of_heads(v, heads, is_transposed=False)
    if k_cache is None or v_cache is None:
        return Skip("keys and values do not extend a cache")
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
    if mask is not None and _is_nan_if_hidden(mask, unseen, q):
        rows = graph.op.Squeeze(nan_of_hidden_rows(graph, mask), np.array([1]))
        result = graph.op.Add(result, rows)
    return result if node.output.shape == whole else graph.op.Reshape(result, shape)


def _refused_caches(pasts: tuple[Value, Value], news: tuple[Value, Value], q: Value) -> Skip | None:
    """Return why the caches do not have one new key and value per group; None if they do."""
    past, batch, size = pasts[0].shape, q.dim(0), q.dim(3)
    if past is None or past != pasts[1].shape or None in past:
        return Skip("past keys and values may differ in length")
    groups = past[1]
    if not isinstance(groups, int) or {new.shape for new in news} != {(batch, groups, 1, size)}:
        return Skip("there is not one new key per query")
    return None


def _refused_mask(
    mask: Value | None, unseen: Node | None, q: Value, keys: Value, past: Value
) -> Skip | None:
    """Return why the kernel may differ for fully masked queries; None if it does not.

    Args:
        mask: the addend of the scores.
        unseen: the IsNaN that selects zeros for fully masked rows.
        q: the queries, [batch, heads, 1, size].
        keys: the transposed keys, [batch, heads, size, length].
        past: the keys without the new one, [batch, groups, length, size].
    """
    if mask is not None and not is_attention_mask(mask, (q.dim(0), q.dim(1)), (1, keys.dim(3))):
        return Skip("the mask is not per head")
    numbers = np.zeros(1) if mask is None else mask_values(mask)
    if numbers is None or ((numbers < _HIDING) & np.isfinite(numbers)).any():
        return Skip("a fully masked row must be -inf")
    if unseen is None and mask is not None and mask.dim(1) != 1 and may_hide_rows(mask):
        return Skip("single heads may see nothing")
    if unseen is None or np.isfinite(numbers).all():
        return None
    if not isinstance(past.dim(2), int) or past.dim(2) == 0:
        return Skip("fully masked queries need a past")
    if q.dtype != DataType.FLOAT:
        return Skip("for float16, fully masked queries are NaN")
    return None


def _is_nan_if_hidden(mask: Value, unseen: Node | None, q: Value) -> bool:
    """Return whether a query that sees nothing is NaN in the chain, and zeros in the kernel."""
    return unseen is None and q.dtype == DataType.FLOAT and may_hide_rows(mask)


def _side_by_side(graph: Graph, heads: Value) -> Value:
    """Return [batch, heads, 1, size] as [batch, 1, heads * size], without a split if it is one."""
    assert heads.static_shape is not None
    batch, number, _, size = heads.static_shape
    whole, node = (batch, 1, number * size), heads.producer
    if node is not None and node.is_op("Transpose"):
        node = node.producer(0) if node.perm == (0, 2, 1, 3) else None
    if node is not None and node.is_op("Reshape") and node.given(0).shape == whole:
        return node.given(0)
    made: Value = graph.op.Reshape(heads, np.array(whole))
    return made


def _lengths(graph: Graph, batch: int, past: Value, mask: Value | None) -> tuple[Value, Value]:
    """Return the number of past keys, int32 [batch], and the total number of keys."""
    op = graph.op
    one, each = graph.constant(np.array(1, np.int32)), graph.constant(np.array([batch]))
    if mask is None:
        before = op.Cast(op.Gather(op.Shape(past), np.array(2)), to=DataType.INT32)
        return op.Expand(before, each), op.Add(before, one)
    # All layers share the mask, so they share the lengths.
    total = op.Cast(op.Gather(op.Shape(mask), np.array(3)), to=DataType.INT32)
    return op.Expand(op.Sub(total, one), each), total
