"""Reshape(Transpose(MatMul(Softmax(MatMul(q, k') + mask), v)))  =>  MultiHeadAttention(q, k, v)"""

from typing import Any, Final

from tiered import (
    Graph,
    Node,
    Skip,
    Value,
    attention_pattern,
    attention_scale,
    const,
    keys_as_heads,
    op,
    rewrite,
    var,
)

_HEADS_FIRST: Final = (0, 2, 1, 3)
_KEYS: Final = (0, 2, 3, 1)

_q = op.Transpose(op.Reshape(var.q, ...), perm=_HEADS_FIRST).bind("queries")
_attended = op.MatMul(attention_pattern(_q | op.Mul(_q, const(name="before"))), var.v)


@rewrite(
    op.Reshape(op.Transpose(_attended, perm=_HEADS_FIRST), var.shape),
    opt_level=3,
    required=("infer_shapes",),
    needs=["com.microsoft::MultiHeadAttention"],
    numerics="reassociating",
)
def fuse_multi_head_attention(
    graph: Graph,
    node: Node,
    queries: Node,
    q: Value,
    keys: Value,
    v: Value,
    mask: Value | None,
    before: Value | None,
    factor: Value | None,
    divisor: Value | None,
    shape: Value,
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
    heads, size = queries.output.dim(1), queries.output.dim(3)
    if not isinstance(heads, int) or not isinstance(size, int) or q.rank != 3:
        return Skip("the number and the size of heads are not known")
    if q.dim(2) != heads * size or q.shape is None or keys.shape is None or v.shape is None:
        return Skip("queries are not split into heads alone")
    if q.shape[:2] != (queries.output.dim(0), queries.output.dim(2)):
        return Skip("queries are not split into heads alone")
    outer = (q.dim(0), heads)
    if None in q.shape[:2] or any(len(x) != 4 or x[:2] != outer for x in (keys.shape, v.shape)):
        return Skip("the numbers of batches or heads may differ")
    if keys.dim(2) != size or keys.dim(3) is None or v.dim(2) != keys.dim(3):
        return Skip("keys and values may be of different lengths")
    if mask is not None and not _is_bias(mask, outer, (q.dim(1), keys.dim(3))):
        return Skip("the mask does not say of each query what it sees")
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    earlier = attention_scale(before, None)
    if isinstance(earlier, Skip):
        return earlier
    width = v.dim(3)
    whole = (*q.shape[:2], heads * width) if isinstance(width, int) else None
    is_whole = whole is not None and node.output.shape == whole
    target = shape.const
    if not is_whole and (width is None or target is None or 0 in target[2:].tolist()):
        return Skip("the result is shaped by the sizes of heads")
    operands = (q, *_keys_and_values(graph, keys, v), None, None, mask)
    made: Value = graph.op("com.microsoft").MultiHeadAttention(
        *operands, num_heads=heads, scale=scale * earlier
    )
    # A 0 in the first two places of the target copies what both have there.
    return made if is_whole else graph.op.Reshape(made, shape)


def _is_bias(mask: Value, outer: tuple[Any, ...], inner: tuple[Any, ...]) -> bool:
    """Tell whether a mask is of rank 4, and only repeated for batches and heads."""
    shape = mask.shape
    if shape is None or len(shape) != 4 or shape[2:] != inner or None in inner:
        return False
    return all(dim in (1, whole) for dim, whole in zip(shape[:2], outer, strict=True))


def _keys_and_values(graph: Graph, k: Value, v: Value) -> tuple[Value, Value]:
    """Return keys and values before they were split into heads, or else both in heads."""
    plain = _before(k, _KEYS), _before(v, _HEADS_FIRST)
    if plain[0] is not None and plain[1] is not None:
        return plain[0], plain[1]
    return keys_as_heads(graph, k), v


def _before(x: Value, perm: tuple[int, ...]) -> Value | None:
    """Return the three dims that a Reshape and a Transpose make heads of, or None."""
    node = x.producer
    if node is None or (node.op_type, node.domain) != ("Transpose", ""):
        return None
    split = node.inputs[0]
    reshape = None if split is None else split.producer
    if split is None or reshape is None or (reshape.op_type, reshape.domain) != ("Reshape", ""):
        return None
    source = reshape.inputs[0]
    if source is None or source.shape is None or split.shape is None or split.rank != 4:
        return None
    if tuple(node.attr("perm")) != perm or len(source.shape) != 3 or None in split.shape[:2]:
        return None
    sizes = split.shape[2:]
    is_split = source.shape[:2] == split.shape[:2] and all(isinstance(dim, int) for dim in sizes)
    return source if is_split else None
