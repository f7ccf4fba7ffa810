"""The adjoint of a copy: each element of the gradient is added where its element came from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tiered.gradients.expression import Expr


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
    zeros = x.zeros().reshape([-1])
    sums = x.call("ScatterElements", zeros, places, g.reshape([-1]), axis=0, reduction="add")
    return sums.reshape_as(x)
