"""Attention as exporters write it: split into heads, attend, merge the heads; and its cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.graph.queries.op_traits import ARITHMETIC, REARRANGES
from tiered.rewriter.language import const, op, var
from tiered.rewriter.skip import Skip
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value
    from tiered.graph.core.types import Dim

_HEADS_FIRST: Final = (0, 2, 1, 3)
_KEYS: Final = (0, 2, 3, 1)
_OF_MASKS: Final = (
    (REARRANGES - {"Flatten", "Tile"})  # by which no exporter computes masks
    | {*ARITHMETIC, "And", "Equal", "Max", "Min"}
    | {"Cast", "Concat", "Trilu", "Where"}
)
"""Operators that compute masks from constants of the model."""


def attention_pattern(q: Any) -> Any:
    """Return the pattern of the attention weights: Softmax(q k' * scale + mask).

    It binds `keys`, which are the transposed k', `mask`, and `factor` or `divisor`.
    """
    plain = op.MatMul(q, var.keys)
    scaled = op.Mul(plain, const(name="factor")) | op.Div(plain, const(name="divisor"))
    scores = op.Add(scaled, var.mask) | scaled | op.Add(plain, var.mask) | plain
    return op.Softmax(scores, axis=lambda axis: axis in (-1, 3))


def attention_scale(factor: Value | None, divisor: Value | None) -> float | Skip:
    """Return the scale of the scores: the factor, 1 / divisor, or 1."""
    number = factor if factor is not None else divisor
    if number is None:
        return 1.0
    array = number.const
    if array is None or array.size != 1 or array.ndim > 4 or not 0 < array.item() < np.inf:
        return Skip("the scale is not one positive number")
    return float(array.item()) if factor is not None else 1 / float(array.item())


def split_scale(value: Value) -> tuple[Value, float]:
    """Split value = x * scale into (x, scale), one positive number; (value, 1) without one."""
    node = value.producer
    if node is None or (node.op_type, node.domain) != ("Mul", "") or not value.has_one_user:
        return value, 1.0
    first, second = node.given(0), node.given(1)
    for x, factor in ((first, second), (second, first)):
        scale = attention_scale(factor, None)
        if x.rank == value.rank and not isinstance(scale, Skip):
            return x, scale
    return value, 1.0


def transposed_keys(graph: Graph, keys: Value) -> Value:
    """Return k of the transposed k': its last two dims are swapped."""
    node = keys.producer
    perm = None if node is None else node.perm
    if node is None or perm is None:
        return graph.op.Transpose(keys, perm=[0, 1, 3, 2])
    before = node.given(0)
    upright = [*perm[:2], perm[3], perm[2]]
    return before if upright == [0, 1, 2, 3] else graph.op.Transpose(before, perm=upright)


# --- heads ---------------------------------------------------------------------------------------


def heads_pattern() -> Any:
    """Return the pattern of multi-head attention, from the split queries to the merged heads.

    It binds `queries`, the Transpose to [batch, heads, queries, size], `keys`, which are the
    transposed k', `v` and `mask`, and the scales: `before` of the queries, `factor` or `divisor` of
    the scores. `unseen` is the IsNaN of a Where that replaces fully masked rows by 0.
    """
    queries = op.Transpose(op.Reshape(var.q, ...), perm=_HEADS_FIRST).bind("queries")
    weights = attention_pattern(queries | op.Mul(queries, const(name="before")))
    seen = op.Where(op.IsNaN(weights).bind("unseen"), 0.0, weights)
    attended = op.MatMul(weights, var.v) | op.MatMul(seen, var.v)
    return op.Reshape(op.Transpose(attended, perm=_HEADS_FIRST), ...)


class AttentionOfHeads(Record):
    """The parts of a multi-head attention.

    Attributes:
        q: [batch, queries, number * size], before the split into heads.
        keys: [batch, number, size, keys].
        v: [batch, number, keys, width].
        mask: added to the scores, [1 or batch, 1 or number, queries, keys].
        number: the number of heads.
        scale: the scale of the scores, with those of queries and keys.
        shape: the shape of the result, if it is not [batch, queries, number * width].
    """

    q: Value
    keys: Value
    v: Value
    mask: Value | None
    number: int
    scale: float
    shape: Value | None

    @property
    def before_split(self) -> tuple[Value, Value] | None:
        """The keys and values before the split, [batch, keys, number * size]; None if not found."""
        k, v = _before_split(self.keys, _KEYS), _before_split(self.v, _HEADS_FIRST)
        return None if k is None or v is None else (k, v)


def attention_of_heads(
    node: Node,
    queries: Node,
    keys: Value,
    v: Value,
    mask: Value | None,
    unseen: Node | None,
    scales: tuple[Value | None, Value | None, Value | None],
) -> AttentionOfHeads | Skip:
    """Return the parts of a multi-head attention, or why it is none.

    Args:
        node: the last node of the pattern.
        queries, keys, v, mask, unseen: as the pattern binds them.
        scales: `before`, `factor` and `divisor`.
    """
    if node.output.dtype != DataType.FLOAT:
        return Skip("attention kernels compute in float32 only")
    keys, of_keys = split_scale(keys)
    reshape = queries.producer(0)
    assert reshape is not None, "queries are a Transpose of a Reshape"
    q = reshape.given(0)
    batch, number, rows, size = (queries.output.dim(at) for at in range(4))
    if not isinstance(number, int) or not isinstance(size, int):
        return Skip("number and size of heads are not known")
    if q.rank is None:
        return Skip("the rank of the queries is not known")
    if q.shape != (batch, rows, number * size):
        return Skip("queries are not split into heads alone")
    outer, shapes = (batch, number), (keys.shape, v.shape)
    if None in (batch, rows) or any(x is None or len(x) != 4 or x[:2] != outer for x in shapes):
        return Skip("batch or head counts may differ")
    if keys.dim(2) != size or keys.dim(3) is None or v.dim(2) != keys.dim(3):
        return Skip("keys and values may be of different lengths")
    if mask is not None and not is_attention_mask(mask, outer, (rows, keys.dim(3))):
        return Skip("the mask is not [batch, heads, queries, keys]")
    numbers = np.zeros(1) if mask is None else mask_values(mask)
    if unseen is not None and (numbers is None or not np.isfinite(numbers).all()):
        return Skip("fully masked queries yield zeros")
    before, factor, divisor = scales
    scale, earlier = attention_scale(factor, divisor), attention_scale(before, None)
    for found in (scale, earlier):
        if isinstance(found, Skip):
            return found
    assert not isinstance(scale, Skip)
    assert not isinstance(earlier, Skip)
    width = v.dim(3)
    shape: Value | None = node.given(1)
    if not isinstance(width, int) or node.output.shape != (batch, rows, number * width):
        target = node.const(1)
        # A 0 among the first two sizes copies a dim that both have.
        if width is None or target is None or 0 in target[2:].tolist():
            return Skip("the final Reshape depends on the sizes of heads")
    else:
        shape = None
    return AttentionOfHeads(q, keys, v, mask, number, scale * earlier * of_keys, shape)


def is_attention_mask(mask: Value, outer: Sequence[Dim], inner: Sequence[Dim]) -> bool:
    """Return whether a mask has rank 4 and broadcasts along batches and heads alone.

    Args:
        mask: the value that is added to the scores.
        outer, inner: batch and heads, queries and keys of the scores.
    """
    shape = mask.shape
    if shape is None or shape[2:] != tuple(inner) or None in inner:
        return False
    return all(dim in (1, whole) for dim, whole in zip(shape[:2], outer, strict=True))


def mask_values(mask: Value) -> NDArray[np.float64] | None:
    """Return all numbers of a mask that is a constant or a Where of constants; else None."""
    node, parts = mask.producer, [mask.const]
    if node is not None and node.is_op("Where"):
        parts = [node.const(1), node.const(2)]
    known = [part.astype(np.float64).ravel() for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def of_mask(mask: Value) -> Iterator[Value]:
    """Yield the constants that a mask is computed from, by operators that exporters use."""
    seen, pending = {mask}, [mask]
    while pending:
        value = pending.pop()
        if value.const is not None:
            yield value
            continue
        node = value.producer
        if node is not None and not node.domain and node.op_type in _OF_MASKS:
            read = [each for each in node.reads if each not in seen]
            seen.update(read)
            pending += read


def may_hide_rows(mask: Value) -> bool:
    """Return whether a mask may be -inf along a whole row: Softmax is NaN there.

    Numbers from outside of the model are not asked for.
    """
    if mask.const is not None:
        return bool(np.all(np.isneginf(mask.const.astype(np.float64)), axis=-1).any())
    return any(
        np.isneginf(value.const.astype(np.float64)).any()
        for value in of_mask(mask)
        if value.const is not None and value.const.dtype.kind not in "biuOSU"
    )


def nan_of_hidden_rows(graph: Graph, mask: Value) -> Value:
    """Return 0 for each row of a mask, and NaN for one that is -inf as a whole: [..., 1].

    It is added to results of kernels that return zeros for such rows, where Softmax returns NaN.
    """
    half = mask.dtype if mask.dtype in (DataType.FLOAT16, DataType.BFLOAT16) else None
    wide = mask if half is None else graph.op.Cast(mask, to=DataType.FLOAT)
    largest = graph.op.ReduceMax(wide, np.array([-1]), keepdims=1)
    made: Value = graph.op.Sub(largest, largest)
    return made if half is None else graph.op.Cast(made, to=half)


def _before_split(x: Value, perm: tuple[int, ...]) -> Value | None:
    """Return the value of rank 3 that a Reshape and a Transpose split into heads, or None."""
    node = x.producer
    if node is None or node.perm != perm:
        return None
    reshape = node.producer(0)
    if reshape is None or not reshape.is_op("Reshape"):
        return None
    source, dims = reshape.given(0), node.given(0).shape or ()
    if source.rank != 3 or (source.shape or ())[:2] != dims[:2] or None in dims[:2]:
        return None
    return source if all(isinstance(dim, int) for dim in dims[2:]) else None


# --- keys and values of the past -----------------------------------------------------------------


class Cache(Record):
    """The Concat of past and new keys or values, each [batch, groups, keys, size]."""

    node: Node
    past: Value
    new: Value


def cache_of_heads(value: Value, heads: int, *, is_transposed: bool) -> Cache | None:
    """Return the cache of keys or values, repeated for the heads of each group, or None.

    Args:
        value: [batch, heads, keys, size].
        heads: the number of heads.
        is_transposed: whether the last two dims are swapped, as those of k'.
    """
    if value.dim(1) != heads:
        return None
    found = _before_repetition(value, is_transposed=is_transposed)
    node = None if found is None else found.producer
    if found is None or node is None or not node.is_op("Concat"):
        return None
    if len(node.inputs) != 2 or node.attr("axis") not in (2, -2) or len(found.users) != 1:
        return None
    return Cache(node, node.given(0), node.given(1))


def _before_repetition(value: Value, *, is_transposed: bool) -> Value | None:
    """Return the value that Unsqueeze, Expand and Reshape repeat for the heads of each group.

    Its last two dims may be swapped before or after that; the result is [..., keys, size]. A value
    that is not repeated is returned itself.
    """
    upright = _producer_operand(value, "Transpose", (0, 1, 3, 2)) if is_transposed else value
    value = upright or value
    repeated = _producer_operand(value, "Reshape")
    apart = _producer_operand(repeated, "Expand")
    if upright is None:
        apart = _producer_operand(apart, "Transpose", (0, 1, 2, 4, 3))
    shared = _producer_operand(apart, "Unsqueeze")
    if apart is None or repeated is None or shared is None or shared.shape is None:
        return upright
    groups, heads, rows = shared.shape, value.shape or (), repeated.shape or ()
    inner = groups[2:] if upright is not None else groups[:1:-1]
    is_repeated = (
        apart.shape == (*groups[:2], 1, *groups[2:])
        and (len(rows), rows[:2], rows[3:]) == (5, groups[:2], inner)
        and (heads[:1], heads[2:]) == (groups[:1], inner)
    )
    return shared if is_repeated else None


def _producer_operand(
    value: Value | None, op_type: str, perm: tuple[int, ...] | None = None
) -> Value | None:
    """Return the first operand of the producer of a value with one user, None if it is another."""
    node = None if value is None else value.producer
    if value is None or node is None or not node.is_op(op_type) or not value.has_one_user:
        return None
    return node.given(0) if node.perm == perm else None
