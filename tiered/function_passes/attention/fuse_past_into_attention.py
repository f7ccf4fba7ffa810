"""Heads of Split(x * w + b) that attend to Concat(past, k)  =>  Attention(x, w, b, past)"""

from typing import Any, Final, NamedTuple

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.attention import attention_scale

_HEADS_FIRST: Final = (0, 2, 1, 3)
_NARROW: Final = 256
_HIDDEN: Final = -1e4
"""A masked score is at most this: its exponential is 0 relative to any other."""

_queries = op.Transpose(op.Reshape(var.q, ...).shared(), perm=_HEADS_FIRST).shared().bind("queries")
_scores = op.MatMul(_queries, op.Transpose(var.k, perm=(0, 1, 3, 2)))
_scaled = op.Mul(_scores, const(name="factor")) | op.Div(_scores, const(name="divisor"))
_hidden = op.Where(var.seen, _scaled, const(name="hidden"))
_attended = op.MatMul(op.Softmax(_hidden, attrs=...).bind("softmax"), var.v)


@rewrite(
    op.Reshape(op.Transpose(_attended, perm=_HEADS_FIRST), var.shape),
    opt_level=3,
    required=("infer_shapes",),
    makes=["com.microsoft::Attention"],
    numerics="reassociating",
)
def fuse_past_into_attention(
    graph: Graph,
    softmax: Node,
    queries: Node,
    q: Value,
    k: Value,
    v: Value,
    seen: Value,
    hidden: Value,
    factor: Value | None,
    divisor: Value | None,
    shape: Value,
    *,
    wide: bool = False,
) -> Value | Skip:
    """Project, append keys and values to the cache, and compute causal attention by one operator.

    The kernel projects for each head and batch entry separately, as for `fuse_qkv_into_attention`.

    Args:
        wide: also fuse if x is wider than 256 and the batch is not known to be 1.
    """
    if q.dtype != DataType.FLOAT or softmax.attr("axis") not in (-1, 3):
        return Skip("Softmax is not float32 over the last axis")
    projected = _projected(q)
    if projected is None:
        return Skip("queries, keys, values are not one split product")
    caches = _cache(k), _cache(v)
    if caches[0] is None or caches[1] is None or caches[0].past is not caches[1].past:
        return Skip("keys and values have different pasts")
    past, x = caches[0].past, projected.x
    if [cache.half for cache in caches if cache is not None] != [0, 1]:
        return Skip("keys are not the first half of the past")
    heads = queries.output.shape
    if heads is None or None in heads or not all(isinstance(dim, int) for dim in heads[1::2]):
        return Skip("number and size of heads are not known")
    if past.shape != (2, *heads[:2], past.dim(3), heads[3]) or past.dim(3) is None:
        return Skip("the past has other heads")
    sources = [_before_split(cache.new, heads) for cache in caches if cache is not None]
    if any(one is not part for one, part in zip(sources, projected.parts[1:], strict=True)):
        return Skip("keys or values are split differently")
    places = (0, heads[0]), (0, heads[2]), (-1, q.dim(2))
    target = [] if shape.const is None else shape.const.tolist()
    if len(target) != len(places) or any(map(_is_other, target, places)):
        return Skip("the output is not the merged heads")
    present = _present(k, v)
    if present is None:
        return Skip("keys and values are not stored as one tensor")
    if not _hides_later(seen, past, k) or not _is_low(hidden):
        return Skip("the mask is not exactly causal")
    width = x.dim(2)
    if not (wide or heads[0] == 1 or (isinstance(width, int) and width <= _NARROW)):
        return Skip("one product projects wide batches faster")
    scale = attention_scale(factor, divisor)
    if isinstance(scale, Skip):
        return scale
    made, stored = graph.op("com.microsoft").Attention(
        *(x, projected.weight, projected.bias, None, past),
        outputs=2,
        num_heads=heads[1],
        unidirectional=1,
        scale=scale,
    )
    graph.replace(present, [stored])
    return made


def _is_other(size: int, places: tuple[int | str | None, ...]) -> bool:
    return size not in places


class _Projected(NamedTuple):
    """A product with a matrix, plus a bias, that is split into queries, keys and values."""

    x: Value
    weight: Value
    bias: Value
    parts: tuple[Value | None, ...]


class _Cache(NamedTuple):
    """One half of a cache, keys or values, and the new entries that are appended."""

    past: Value
    half: int
    new: Value


def _made_by(value: Value | None, op_type: str) -> Node | None:
    node = None if value is None else value.producer
    return node if node is not None and node.is_op(op_type) else None


def _projected(q: Value) -> _Projected | None:
    """Return the projection whose first third is `q`; None if there is none."""
    split = _made_by(q, "Split")
    if split is None or len(split.outputs) != 3:
        return None
    added = _made_by(split.given(0), "Add")
    if added is None:
        return None
    product, bias = added.given(0), added.given(1)
    node = _made_by(product, "MatMul")
    if node is None:
        bias, node = product, _made_by(bias, "MatMul")
    if node is None or not added.output.has_one_user or split.outputs[0] is not q:
        return None
    x, weight = node.given(0), node.given(1)
    if x.rank != 3 or weight.rank != 2 or bias.rank != 1:
        return None
    width = q.dim(2)
    is_even = isinstance(width, int) and weight.dim(1) == bias.dim(0) == 3 * width
    is_last = split.attr("axis") in (2, -1)
    parts = tuple(split.outputs)
    same = all(part is not None and part.dim(2) == width for part in parts)
    return _Projected(x, weight, bias, parts) if is_even and is_last and same else None


def _cache(value: Value) -> _Cache | None:
    """Return the half of a cache that is the first input of a Concat."""
    node = _made_by(value, "Concat")
    if node is None or len(node.inputs) != 2:
        return None
    half, new = _made_by(node.given(0), "Gather"), node.given(1)
    if node.attr("axis") not in (2, -2) or half is None or half.attr("axis") != 0:
        return None
    past, index = half.given(0), half.given(1)
    at = index.number if index.rank == 0 else None
    return _Cache(past, int(at) % 2, new) if at in (-2, -1, 0, 1) else None


def _before_split(heads: Value, wanted: tuple[int | str | None, ...]) -> Value | None:
    """Return the value that a Reshape and a Transpose split into heads."""
    turned = _made_by(heads, "Transpose")
    if turned is None or turned.perm != _HEADS_FIRST or heads.shape != wanted:
        return None
    split = _made_by(turned.inputs[0], "Reshape")
    return None if split is None else split.inputs[0]


def _present(k: Value, v: Value) -> Node | None:
    """Return the Concat that stores keys and values as halves of one tensor."""
    for outer in k.readers:
        for node in outer.output.readers if outer.is_op("Unsqueeze") else ():
            if node.is_op("Concat") and node.attr("axis") in (0, -5):
                stored = [_unstacked(value) for value in node.inputs]
                if len(stored) == 2 and stored[0] is k and stored[1] is v:
                    return node
    return None


def _unstacked(value: Value | None) -> Value | None:
    """Return the operand of an Unsqueeze that adds a first dim."""
    node = _made_by(value, "Unsqueeze")
    if node is None:
        return None
    axes = node.operand("axes")
    if axes is None or axes.const is None:
        return None
    return node.given(0) if axes.const.tolist() in ([0], [-5]) else None


def _hides_later(seen: Value, past: Value, k: Value) -> bool:
    """Return whether a mask is causal: a query sees its own position and earlier ones.

    The mask must be a slice of a constant that is true on and below the diagonal: the rows after
    the past, and the columns of all keys.
    """
    cast = _made_by(seen, "Cast")
    value = seen if cast is None else cast.given(0)
    ranges: dict[int, tuple[object, object]] = {}
    while (node := _made_by(value, "Slice")) is not None:
        found = [node.operand(name) for name in ("starts", "ends", "axes", "steps")]
        starts, ends, axes = (None if one is None else one.elements for one in found[:3])
        steps = found[3]
        if starts is None or ends is None or axes is None:
            return False
        if steps is not None and (steps.const is None or (steps.const != 1).any()):
            return False
        for axis, start, end in zip(axes.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if axis not in (-2, -1, 2, 3) or axis % 4 in ranges:
                return False
            ranges[axis % 4] = start, end
        value = node.given(0)
    table = value.const
    if table is None or table.ndim != 4 or table.shape[:2] != (1, 1):
        return False
    places = past.dim(3)
    if not ranges and isinstance(places, int):
        # With known sizes the slice has been folded.
        return _is_triangle(table[0, 0], places)
    dims = past.owner.model.dims
    before, whole = dims.size(past.dim(3)), dims.size(k.dim(2))
    if before is None or whole is None or ranges != {2: (before, whole), 3: (0, whole)}:
        return False
    return _is_triangle(table[0, 0], 0)


def _is_triangle(table: np.ndarray[Any, np.dtype[Any]], above: int) -> bool:
    """Return whether a table is true exactly up to the given diagonal."""
    rows, columns = table.shape
    return bool(np.array_equal(table != 0, np.tri(rows, columns, above, dtype=bool)))


def _is_low(hidden: Value) -> bool:
    return hidden.number is not None and hidden.number <= _HIDDEN
