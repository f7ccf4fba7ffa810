"""The adjoint of a copy: each element of the gradient is added where its element came from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiered.extensions.gradients.expression import Expr


def added_back(x: Expr, g: Expr, move: Callable[[Expr], Expr]) -> Expr:
    """Return the gradient of x, if the output has copies of its elements in other places.

    The operator itself says where they are: it moves the positions 0, 1, 2, ... of x.

    Args:
        x: the operand.
        g: the gradient of the output.
        move: applies the operator to int64 positions in the shape of x.
    """
    shape = x.value.static_shape
    if shape is not None:
        numbers = np.arange(np.prod(shape, dtype=np.int64)).reshape(shape)
        positions = x.of(x.graph.constant(numbers, f"{x.name}/positions"))
    else:
        size = x.call("Size", x)
        positions = x.call("Range", np.int64(0), size, np.int64(1)).reshape_as(x)
    places = move(positions).reshape([-1])
    count = x.call("Size", x).unsqueeze([0])
    return summed_at(places, g.reshape([-1]), count).reshape_as(x)


def summed_at(places: Expr, rows: Expr, count: Expr) -> Expr:
    """Return the sums of the rows at each place, and zeros at places without rows.

    Before opset 16 no operator adds at indices: there it is a product with a matrix of zeros and
    ones, of as many elements as there are rows and places.

    Args:
        places: the place of each row, int64 [N], from either end.
        rows: [N, ...].
        count: the number of places, int64 [1].
    """
    if rows.graph.opset() >= _ADDING_SINCE:
        sizes = rows.call("Concat", count, rows.sizes(1), axis=0)
        zeros = sizes.full(0, rows.dtype)
        return zeros.call("ScatterND", zeros, places.unsqueeze([1]), rows, reduction="add")
    zero_and_one = np.array([0, 1], rows.dtype.numpy)
    chosen = places.call("OneHot", places, count, zero_and_one, axis=0)
    flat = chosen @ rows.reshape(_two_axes(rows))
    sizes = rows.call("Concat", count, _rest(rows), axis=0)
    return flat.reshape(sizes)


_ADDING_SINCE = 16
"""The opset in which ScatterND got its reduction."""


def _two_axes(rows: Expr) -> Expr:
    size = rows.call("ReduceProd", _rest(rows), keepdims=1) if rows.rank > 1 else rows.integers([1])
    return rows.call("Concat", [-1], size, axis=0)


def _rest(rows: Expr) -> Expr:
    """Return the dims after the first, int64."""
    dims = rows.value.static_shape
    return rows.sizes(1) if dims is None else rows.integers(dims[1:])
