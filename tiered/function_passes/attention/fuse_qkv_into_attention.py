"""Heads of x * wq + bq that attend to those of x * wk + bk  =>  Attention(x, [w], [b])"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiered import Graph, Node, Skip, Value, rewrite
from tiered.rewriter.idioms.attention import attention_of_heads, heads_pattern

Matrix: TypeAlias = NDArray[Any]

_NARROW: Final = 256
_LONG: Final = 128


class _Projection(NamedTuple):
    x: Value
    weight: Value
    bias: Value | None


@rewrite(
    heads_pattern(),
    opt_level=3,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    makes=["com.microsoft::Attention"],
    numerics="reassociating",
)
def fuse_qkv_into_attention(
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
    wide: bool = False,
) -> Value | Skip:
    """Project one tensor to queries, keys and values, compute attention, and merge the heads.

    The three matrices become one. The kernel multiplies for each head and batch entry separately,
    which is slower for a wide matrix and many short sequences.

    Args:
        wide: also fuse if x is wider than 256, unless the batch is 1 or the length at least 128.
    """
    heads = attention_of_heads(node, queries, keys, v, mask, unseen, (before, factor, divisor))
    if isinstance(heads, Skip):
        return heads
    split = heads.before_split
    if split is None:
        return Skip("keys and values are already split into heads")
    found = [one for value in (heads.q, *split) if (one := _projection(value)) is not None]
    if len(found) < 3 or any(one.x is not found[0].x for one in found):
        return Skip("queries, keys and values have different sources")
    if any(one.bias is not None and one.bias.dim(0) != one.weight.dim(1) for one in found):
        return Skip("a bias broadcasts a single column")
    if not heads.q.has_one_user or not all(map(_is_all_for, (heads.keys, v))):
        return Skip("queries, keys or values have other consumers")
    if any(not one.weight.has_one_user for one in found):
        return Skip("a matrix has other consumers")
    batch, length, width = heads.q.dim(0), heads.q.dim(1), found[0].weight.dim(0)
    is_long = isinstance(length, int) and length >= _LONG
    if not (wide or batch == 1 or is_long or (isinstance(width, int) and width <= _NARROW)):
        return Skip("one product projects short sequences faster")
    weight, bias, sizes = _joined(found)
    made: Value = graph.op("com.microsoft").Attention(
        found[0].x,
        graph.constant(weight, found[0].weight.name),
        graph.constant(bias, f"{found[0].weight.name}_bias"),
        *(None, None, mask),
        num_heads=heads.number,
        qkv_hidden_sizes=sizes,
        scale=heads.scale,
    )
    return made if heads.shape is None else graph.op.Reshape(made, heads.shape)


def _projection(value: Value) -> _Projection | None:
    """Return the parts of a product with a constant matrix and an optional constant bias."""
    node, bias = value.producer, None
    if node is not None and node.is_op("Add"):
        product, bias = node.given(0), node.given(1)
        if product.is_constant:
            product, bias = bias, product
        if bias.const is None or not product.has_one_user:
            return None
        if value.shape is None or bias.shape != value.shape[-1:]:
            return None
        node = product.producer
    if node is None or not node.is_op("MatMul"):
        return None
    x, weight = node.given(0), node.given(1)
    if not weight.is_constant or weight.rank != 2:
        return None
    return _Projection(x, weight, bias)


def _is_all_for(heads: Value) -> bool:
    """Return whether heads, and the values they are split from, have one consumer each."""
    values = [heads]
    while len(values) < 3 and (node := values[-1].producer) is not None:
        values += [value for value in node.inputs[:1] if value is not None]
    return all(value.has_one_user for value in values)


def _joined(parts: Sequence[_Projection]) -> tuple[Matrix, Matrix, list[int] | None]:
    """Return the concatenated matrices and biases, and the sizes if these differ."""
    matrices, biases = list[Matrix](), list[Matrix]()
    for part in parts:
        matrix, bias = part.weight.const, None if part.bias is None else part.bias.const
        assert matrix is not None
        matrices.append(matrix)
        biases.append(np.zeros(matrix.shape[1], matrix.dtype) if bias is None else bias)
    sizes = [len(bias) for bias in biases]
    different = sizes if len(set(sizes)) > 1 else None
    return np.concatenate(matrices, 1), np.concatenate(biases), different
