"""Reshape(MatMul(Reshape(x), w))  =>  MatMul(x, w), if only dims of 1 are added and removed"""

import itertools
from typing import Final

from tiered import Graph, Node, Skip, Value, op, rewrite, var

Shape = tuple[int | str | None, ...]

_RESHAPES: Final = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})

_product = op.MatMul(var.a, var.b)


@rewrite(
    op.Reshape(_product, ..., attrs="ignored")
    | op.Flatten(_product, attrs="ignored")
    | op.Squeeze(_product, ...)
    | op.Unsqueeze(_product, ...),
    opt_level=2,
    required=("infer_shapes",),
)
def eliminate_reshape_around_matmul(graph: Graph, node: Node, a: Value, b: Value) -> Value | Skip:
    """Multiply the same matrices without adding and removing dims of 1.

    A vector on the left is multiplied as a row; one on the right has a kernel of its own. A kernel
    may multiply a stack by one matrix as one tall matrix. Its height may change the summation
    order, so it must stay the same too.
    """
    first, second = _reshaped(a), _reshaped(b)
    if first is a and second is b:
        return Skip("no operand is reshaped")
    for x, w in itertools.product(dict.fromkeys((first, a)), dict.fromkeys((second, b))):
        if (x is not a or w is not b) and _multiplies_the_same(x, w, a, b, node.output.shape):
            return graph.op.MatMul(x, w)
    return Skip("the result would have another shape")


def _reshaped(value: Value) -> Value:
    """Return the value before a Reshape; any other value unchanged.

    Constants are excluded: folding reshapes them, and kernels pack them.
    """
    node = value.producer
    if node is None or node.domain or node.op_type not in _RESHAPES:
        return value
    source = node.given(0)
    return value if source.is_constant else source


def _multiplies_the_same(x: Value, w: Value, a: Value, b: Value, result: Shape | None) -> bool:
    """Return whether x and w have the matrices of a and b, and their product has a given shape."""
    shapes = [_as_rows(x.shape), w.shape, _as_rows(a.shape), b.shape]
    if any(shape is None or len(shape) < 2 or None in shape for shape in shapes):
        return False
    (left, one), (right, other), (left_was, one_was), (right_was, other_was) = (
        (shape[:-2], shape[-2:]) for shape in shapes if shape is not None
    )
    if (one, other) != (one_was, other_was):
        return False
    if (_many(left), _many(right)) != (_many(left_was), _many(right_was)):
        return False
    is_tall, was_tall = not right, not right_was
    if is_tall != was_tall and _many(left):
        return False
    batch = _batch(left, right)
    if batch is None or _batch(left_was, right_was) is None:
        return False
    rows = one[:1] if x.rank != 1 else ()
    return (*batch, *rows, other[1]) == result


def _as_rows(shape: Shape | None) -> Shape | None:
    """Return the shape of a left operand with a vector as the row that kernels read it as."""
    return (1, *shape) if shape is not None and len(shape) == 1 else shape


def _many(batch: Shape) -> Shape:
    return tuple(dim for dim in batch if dim != 1)


def _batch(left: Shape, right: Shape) -> Shape | None:
    """Return the dims of a stack of products; None if an operand broadcasts."""
    if left == right:
        return left
    if not _many(right):
        return (1,) * (len(right) - len(left)) + left
    return None if _many(left) else (1,) * (len(left) - len(right)) + right
