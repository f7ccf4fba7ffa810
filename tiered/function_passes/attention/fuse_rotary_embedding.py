"""x * cos + Concat(-x[h:], x[:h]) * sin  =>  RotaryEmbedding(x, cos[:h], sin[:h])"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, same_axes, var
from tiered.graph.core.types import Dim
from tiered.rewriter.idioms.rotary import are_halves, rotated_half, split_in_two

_FIRST_OPSET: Final = 23
_ELEMENTWISE: Final = frozenset({"Cast", "Cos", "Identity", "Neg", "Sin"})

_of_halves = op.Concat(
    op.Sub(op.Mul(split_in_two, var.half_cos), op.Mul(split_in_two.out(1), var.half_sin)),
    op.Add(op.Mul(split_in_two.out(1), var.half_cos), op.Mul(split_in_two, var.half_sin)),
    axis=...,
)


@rewrite(
    op.Add(op.Mul(var.x, var.cos), op.Mul(rotated_half.bind("joined"), var.sin))
    | _of_halves.bind("joined"),
    opt_level=3,
    required=("infer_shapes",),
    may_make=["com.microsoft::RotaryEmbedding"],
    numerics="reassociating",
)
def fuse_rotary_embedding(
    graph: Graph,
    joined: Node,
    x: Value,
    first: Node | None,
    second: Node | None,
    split: Node | None,
    cos: Value | None,
    sin: Value | None,
    half_cos: Value | None,
    half_sin: Value | None,
) -> Value | Skip:
    """Rotate the halves of each head by one operator.

    The model has cosines and sines for both halves; the operator takes one half of them.
    """
    size = x.dim(3) if x.rank == 4 else None
    if not isinstance(size, int) or size % 2 or x.dtype not in (DataType.FLOAT, DataType.FLOAT16):
        return Skip("the head size is odd or unknown")
    if joined.attr("axis") not in (-1, 3) or not are_halves(size, 4, first, second, split):
        return Skip("the rotated parts are not halves")
    if graph.opset() < _FIRST_OPSET:
        refused = graph.refusal("RotaryEmbedding", "com.microsoft")
        if refused is not None:
            return Skip("{}", refused)
    angles, outer = [], set()
    for whole, half in ((cos, half_cos), (sin, half_sin)):
        value = half if whole is None else _half(graph, whole, size)
        shape = None if value is None else value.shape
        if value is None or shape is None:
            return Skip("halves of cosines or sines may differ")
        if len(shape) > 4 or shape[-2:] != (x.dim(2), size // 2):
            return Skip("there is not one cosine per token pair")
        angles.append(value)
        outer.add((1,) * (4 - len(shape)) + shape[:-2])
    return _rotated(graph, x, angles, outer)


def _rotated(
    graph: Graph, x: Value, angles: Sequence[Value], outer: set[tuple[Dim, ...]]
) -> Value | Skip:
    batches = {dims[0] for dims in outer}
    if any(dims[1] != 1 for dims in outer) or len(batches) > 1:
        return Skip("the cosines differ by head")
    batch = batches.pop()
    if graph.opset() >= _FIRST_OPSET and batch == x.dim(0):
        return graph.op.RotaryEmbedding(x, *(_of_rank(graph, angle, 3) for angle in angles))
    if batch != 1:
        return Skip("the cosines differ by batch entry")
    start = graph.constant(np.zeros(1, np.int64), "start")
    caches = (_of_rank(graph, angle, 2) for angle in angles)
    rotated: Value = graph.op("com.microsoft").RotaryEmbedding(x, start, *caches)
    return rotated


def _of_rank(graph: Graph, angle: Value, rank: int) -> Value:
    """Return angles of a given rank, by removing or adding leading dims of size 1."""
    surplus = len(angle.shape or ()) - rank
    if surplus < 0:
        return graph.op.Unsqueeze(angle, np.arange(-surplus))
    # The heads are dim 1 of 4 dims, or dim 0 of 3.
    first = 1 if (rank, surplus) == (3, 1) else 0
    return graph.op.Squeeze(angle, np.arange(first, first + surplus)) if surplus else angle


def _half(graph: Graph, value: Value, size: int) -> Value | None:
    """Return the first half of the last dim if both halves are equal, else None."""
    array = value.const
    if array is not None:
        if not array.ndim or array.shape[-1] != size:
            return None
        one, other = array[..., : size // 2], array[..., size // 2 :]
        is_double = np.array_equal(one, other)
        return graph.constant(np.ascontiguousarray(one), value.name) if is_double else None
    node = value.producer
    if node is None or node.domain or node.has_references or value.dim(-1) != size:
        return None
    if node.op_type == "Concat":
        twice = len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
        is_last = same_axes([node.attr("axis")], [-1], value.rank)
        return node.inputs[0] if twice and is_last else None
    if node.op_type in _ELEMENTWISE:
        half = _half(graph, node.given(0), size)
        return None if half is None else graph.op.like(node, half)
    if node.op_type == "Unsqueeze":
        half = _half(graph, node.given(0), size)
        return None if half is None else graph.op.Unsqueeze(half, node.operand("axes"))
    if node.op_type == "Gather" and node.attr("axis") == 0 and node.given(0).rank not in (None, 1):
        half = _half(graph, node.given(0), size)
        return None if half is None else graph.op.Gather(half, node.input(1))
    return None
