"""MatMul(Softmax(MatMul(q, k') * scale + mask), v)  =>  Attention(q, k, v, mask)"""

from typing import Any, Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, broadcasts_into, op, rewrite, var
from tiered.rewriter.idioms.attention import (
    attention_pattern,
    attention_scale,
    may_hide_rows,
    nan_of_hidden_rows,
    of_mask,
    transposed_keys,
)

_AVERAGES: Final = 25
"""From this opset, onnxruntime averages rows masked by the minimum; before, they are 0."""

_LARGEST: Final[dict[int | None, float]] = {
    DataType.FLOAT: 3.4028235e38,
    DataType.FLOAT16: 65504.0,
    DataType.BFLOAT16: 3.3895314e38,
}

_weights = attention_pattern(var.q)


@rewrite(
    op.MatMul(_weights, var.v)
    # In this form a fully masked row is 0, as in the operator.
    | op.MatMul(op.Where(op.IsNaN(_weights).bind("unseen"), 0.0, _weights), var.v),
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
    unseen: Node | None,
    factor: Value | None,
    divisor: Value | None,
) -> Value | Skip:
    """Compute attention by one operator.

    Rows that the model masks fully by -inf are NaN in the chain, and 0 in the operator: there, NaN
    is added.
    """
    if q.dtype == DataType.DOUBLE:
        return Skip("the kernel's scale is float32")
    if q.rank != 4 or keys.rank != 4 or v.rank != 4:
        return Skip("the operands are not [batch, heads, sequence, size]")
    outer = {(value.dim(0), value.dim(1)) for value in (q, keys, v)}
    if len(outer) != 1 or None in (sizes := outer.pop()):
        return Skip("batch or head counts may differ")
    if not isinstance(sizes[0], int):
        return Skip("onnxruntime's kernel rejects an empty batch")
    if 0 in (*sizes, q.dim(2), keys.dim(3)):
        return Skip("onnxruntime's kernel rejects empty attention")
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    if mask is not None:
        whole = (q.dim(0), q.dim(1), q.dim(2), keys.dim(3))
        shape = mask.shape
        if shape is None or shape[-2:] != whole[2:] or None in whole[2:]:
            return Skip("the mask is not [batch, heads, queries, keys]")
        if not broadcasts_into(shape, whole):
            return Skip("the mask may be larger than the scores")
        if graph.opset() < _AVERAGES and _hides_by_lowest(mask):
            return Skip("onnxruntime's kernel zeroes rows masked by the minimum")
    made: Value = graph.op.Attention(q, transposed_keys(graph, keys), v, mask, scale=scale)
    if mask is None or unseen is not None or not may_hide_rows(mask):
        return made
    return graph.op.Add(made, nan_of_hidden_rows(graph, mask))


def _hides_by_lowest(mask: Value) -> bool:
    """Return whether a mask may hide a whole row by a number near the minimum of its dtype."""
    if mask.const is not None:
        return bool(np.all(_are_extreme(mask), axis=-1).any())
    return any(np.any(_are_extreme(value)) for value in of_mask(mask))


def _are_extreme(value: Value) -> Any:
    """Return which elements of a constant are finite and beyond half of the dtype's maximum."""
    array, largest = value.const, _LARGEST.get(value.dtype)
    if array is None or largest is None:
        return False
    numbers = np.abs(array.astype(np.float64))
    return np.isfinite(numbers) & (numbers > largest / 2)
