"""Constant addends on their way through attention: which number each element contains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Node, Value
    from tiered.graph.core.types import Dim

_MOVES: Final = ("Reshape", "Transpose")


class Addend(NamedTuple):
    """What a constant added to a value.

    Attributes:
        value: the value that contains it.
        numbers: float64 of the value's rank; a dim is 1 where the addend does not vary.
    """

    value: Value
    numbers: NDArray[np.float64]

    def varies_along(self, axis: int) -> bool:
        """Return whether the addend varies along an axis of the value."""
        return int(self.numbers.shape[axis]) != 1


def addend_of(node: Node, x: Value, bias: Value) -> Addend | Skip:
    """Return what an Add of x and a constant adds, if the result has the shape of x."""
    array, rank = bias.const, x.rank
    assert array is not None
    if not x.is_float:
        return Skip("the dtype is not a float")
    if rank is None or x.shape != node.output.shape or None in (x.shape or ()):
        return Skip("the addend may change the shape")
    numbers = array.astype(np.float64).reshape((1,) * (rank - array.ndim) + array.shape)
    if not np.isfinite(numbers).all():
        return Skip("the addend is not finite")
    return Addend(node.output, _without_repeats(numbers))


def use_behind(value: Value) -> tuple[Node, int] | Skip:
    """Return the one use of a value behind all Reshapes and Transposes: a node and its operand.

    It needs no numbers: most addends lead to no product, which is known so at once.
    """
    while True:
        if not value.has_one_user:
            return Skip("{} has other consumers", value.name)
        node, slot = value.users[0]
        if node.graph is not value.graph:
            return Skip("a body reads {}", value.name)
        if node.domain or node.op_type not in _MOVES or slot != 0:
            return node, slot
        value = node.output


def is_second_factor(node: Node, slot: int) -> bool:
    """Return whether an operand is the right one of a MatMul, and a matrix."""
    return node.is_op("MatMul") and slot == 1 and (node.given(1).rank or 0) > 1


def addend_at_use(node: Node, x: Value, bias: Value) -> tuple[Addend, Node, int] | Skip:
    """Return what an Add of x and a constant adds, behind all Reshapes and Transposes."""
    addend = addend_of(node, x, bias)
    return addend if isinstance(addend, Skip) else moved_addend(addend)


def moved_addend(addend: Addend) -> tuple[Addend, Node, int] | Skip:
    """Return the addend behind all Reshapes and Transposes, with the one use of its value there."""
    used = use_behind(addend.value)
    if isinstance(used, Skip):
        return used
    while True:
        node, slot = addend.value.users[0]
        if (node, slot) == used:
            return addend, node, slot
        numbers = _behind(node, addend)
        if isinstance(numbers, Skip):
            return numbers
        addend = Addend(node.output, numbers)


def _behind(node: Node, addend: Addend) -> NDArray[np.float64] | Skip:
    if node.op_type == "Transpose":
        perm = node.perm
        if perm is None:
            return Skip("the rank before Transpose is not known")
        return addend.numbers.transpose(perm)
    here, there = addend.value.shape, node.output.shape
    if here is None or there is None:
        return Skip("a rank of Reshape is not known")
    wide = [axis for axis in range(len(here)) if addend.varies_along(axis)]
    # Axes from the first one that the addend varies along keep their elements together if they
    # are as many elements of whole axes on the other side.
    first = wide[0] if wide else len(here)
    sizes = _ints(here[first:])
    if sizes is None:
        return Skip("Reshape takes the axes of the addend apart")
    numbers = np.broadcast_to(addend.numbers[(0,) * first], sizes)
    for axis in range(len(there), -1, -1):
        inner = _ints(there[axis:])
        if inner is not None and math.prod(inner) == math.prod(sizes) > 0:
            return _without_repeats(numbers.reshape((1,) * axis + inner))
    return Skip("Reshape takes the axes of the addend apart")


def _ints(dims: Sequence[Dim]) -> tuple[int, ...] | None:
    """Return dims that are all known, or None."""
    known = tuple(dim for dim in dims if isinstance(dim, int))
    return known if len(known) == len(dims) else None


def _without_repeats(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers with a dim of 1 for each axis that they do not vary along."""
    for axis in range(numbers.ndim):
        first = numbers.take([0], axis) if numbers.shape[axis] else numbers
        if np.array_equal(np.broadcast_to(first, numbers.shape), numbers):
            numbers = first
    return numbers
