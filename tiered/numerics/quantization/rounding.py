"""Weights of 8 bits, rounded so that the errors of a product cancel on the data of samples.

Columns of a weight are rounded one after the other, with the scales that it has. The error of each
is spread over the columns that are not rounded yet, so that the result changes least.

Source: Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization", algorithm 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import Model, Node, Value
from tiered.numerics.precision.few_bits.sampled_operands import Operands, Sampling, WeightOperand
from tiered.numerics.quantization.scales import Weight
from tiered.numerics.quantization.weight_pairs import LARGEST_SUM, Neighbours, Order, neighbours_of

Array = np.ndarray[Any, Any]

MOST_COLUMNS: Final = 2048
"""Weights with more columns are rounded to nearest: the time grows with the cube of these."""

_DAMPINGS: Final = (1.0, 0.1, 0.01)
"""Added to the second moments, in parts of their mean; the fewer the samples, the more pays."""

_LEAST_GAIN: Final = 0.97
"""The error on rows that were held back must fall to this part of that of rounding to nearest."""

_CHOSEN_BY: Final = 256
"""So many rows of a weight choose the damping."""

_TOGETHER: Final = 32
"""Columns whose errors are spread over the others at once."""


class Rows(NamedTuple):
    """The rows of a weight by group of channels, as a product sums over them.

    Attributes:
        numbers: float32 [groups, rows, columns].
        scales: float32 [groups, rows].
        reach: the largest code.
        neighbours: the pairs of columns that are limited together.
    """

    numbers: Array
    scales: Array
    reach: int
    neighbours: Sequence[Neighbours]

    def some(self) -> tuple[Rows, Array]:
        """Return a part of the rows to choose by, and the groups that they are of."""
        groups, rows, _ = self.numbers.shape
        step = -(-groups * min(rows, _CHOSEN_BY) // _CHOSEN_BY)
        chosen, every = np.arange(0, groups, step), -(-rows // _CHOSEN_BY)
        part = self._replace(
            numbers=self.numbers[chosen, ::every], scales=self.scales[chosen, ::every]
        )
        return part, chosen


def compensated(rows: Rows, nearest: Array, operand: WeightOperand) -> Array | None:
    """Return codes that are rounded for an operand; None if nearest ones are as good.

    Dampings are tried on some rows, from the strongest on, until the error on the rows of the
    operand that were held back rises. The last but one is taken.

    Args:
        rows: of a weight.
        nearest: their codes, rounded to nearest, [groups, rows, columns].
        operand: what they are multiplied by, [rows, groups * columns].
    """
    groups, _, columns = rows.numbers.shape
    fitted, held = (_by_group(each, groups) for each in (operand.fitted, operand.held))
    if columns > MOST_COLUMNS or fitted.shape[2] != columns or not fitted.any():
        return None
    part, chosen = rows.some()
    step = slice(None, None, -(-rows.numbers.shape[1] // _CHOSEN_BY))
    moments, start = _moments(fitted[chosen]), nearest[chosen, step]

    def error(codes: Array) -> float:
        wrong = codes * part.scales[..., None] - part.numbers
        return float(np.linalg.norm(held[chosen] @ wrong.swapaxes(1, 2).astype(np.float32)))

    least, damping = math.inf, 0.0
    for each in _DAMPINGS:
        found = error(_spread(part, start, _factors(moments, each)))
        if not found < least:
            break
        least, damping = found, each
    if not least < _LEAST_GAIN * error(start):
        return None
    return _spread(rows, nearest, _factors(_moments(fitted) + _moments(held), damping))


def _by_group(rows: Array, groups: int) -> Array:
    """Return rows of an operand as [groups, rows, columns]."""
    return np.ascontiguousarray(rows.reshape(len(rows), groups, -1).swapaxes(0, 1))


def _moments(rows: Array) -> Array:
    """Return the second moments of columns, float64 [groups, columns, columns]."""
    wide = rows.astype(np.float64)
    moments: Array = wide.swapaxes(1, 2) @ wide
    return moments


def _factors(moments: Array, damping: float) -> Array:
    """Return the upper triangular factors of the inverses of damped moments."""
    damped, columns = moments.copy(), moments.shape[1]
    means = np.trace(moments, axis1=1, axis2=2) / columns
    diagonal = np.arange(columns)
    damped[:, diagonal, diagonal] += damping * np.where(means > 0, means, 1.0)[:, None]
    factors: Array = np.linalg.cholesky(np.linalg.inv(damped)).swapaxes(1, 2)
    return factors


def _spread(rows: Rows, nearest: Array, factors: Array) -> Array:
    """Return codes, each column rounded after the errors of those before it are spread.

    Args:
        rows: of a weight.
        nearest: their codes, rounded to nearest, which are within the limits of pairs.
        factors: U for each group, with U^T U the inverse of the second moments of the operand.
            Spreading the error of column i adds -error / U[i,i] * U[i,j] to column j.
    """
    left = np.moveaxis(rows.numbers, 2, 0).astype(np.float64)
    codes = np.moveaxis(nearest, 2, 0).astype(np.float64)
    scales, partners = rows.scales.astype(np.float64), _partners(len(left), rows.neighbours)
    for start in range(0, len(left), _TOGETHER):
        end = min(start + _TOGETHER, len(left))
        errors = np.empty((end - start, *scales.shape))
        for at in range(start, end):
            limit: Any = rows.reach
            for other in partners[at]:
                limit = np.minimum(limit, LARGEST_SUM - np.abs(codes[other]))
            codes[at] = np.clip(np.rint(left[at] / scales), -limit, limit)
            error = (left[at] - codes[at] * scales) / factors[:, at, at, None]
            left[at + 1 : end] -= factors[:, at, at + 1 : end].T[..., None] * error
            errors[at - start] = error
        over = factors[:, start:end, end:].swapaxes(1, 2) @ errors.swapaxes(0, 1)
        left[end:] -= over.swapaxes(0, 1)
    return np.moveaxis(codes, 0, 2)


def _partners(columns: int, neighbours: Sequence[Neighbours]) -> list[list[int]]:
    """Return the columns that each one is limited together with.

    Of those that are rounded later the code rounded to nearest counts, so that it stays possible.
    """
    found: list[list[int]] = [[] for _ in range(columns)]
    for first, second in neighbours:
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            found[one].append(other)
            found[other].append(one)
    return found


class Rounding:
    """The weights of products, rounded for the data of samples; each is rounded once.

    A context manager.

    Args:
        model: of floats, as it is now.
        readers: the products that read each weight as their operand 1, summed over the same axes.
        feeds: the samples.
    """

    def __init__(
        self, model: Model, readers: Mapping[Value, Sequence[Node]], feeds: Sequence[Any]
    ) -> None:
        self._known: dict[tuple[Value, int, bytes], Weight] = {}
        self._operands = Operands(model, Sampling(inputs=feeds))
        self._operands.plan(readers)

    def __enter__(self) -> Rounding:
        return self

    def __exit__(self, *error: object) -> None:
        self._operands.__exit__()

    def of(self, node: Node, value: Value, weight: Weight, orders: Sequence[Order]) -> Weight:
        """Return a weight with codes for the data of samples; as it is if these gain nothing.

        Args:
            node: a product that reads it.
            value: the weight of floats.
            weight: the same, rounded to nearest.
            orders: those in which kernels add pairs that must not saturate.
        """
        axis = weight.axis
        if axis is None or weight.zeros.any():
            return weight
        key = value, axis, weight.scales.tobytes()
        if key not in self._known:
            operand = self._operands.of(value)
            found = None if operand is None else _fitted(node, value, weight, orders, operand)
            self._known[key] = weight if found is None else weight._replace(codes=found)
        return self._known[key]


def _fitted(
    node: Node, value: Value, weight: Weight, orders: Sequence[Order], operand: WeightOperand
) -> Array | None:
    """Return the codes of a weight for an operand, in the shape of the weight."""
    assert value.tensor is not None
    assert weight.axis is not None
    array, axis = value.tensor.numpy(), weight.axis
    groups = int(node.attr("group")) if node.is_op("Conv") else 1
    shape = (groups, array.shape[axis] // groups, -1)
    numbers = np.moveaxis(array.astype(np.float32), axis, 0).reshape(shape)
    nearest = np.moveaxis(weight.codes, axis, 0).reshape(shape)
    reach = int(np.abs(nearest.astype(np.int32)).max(initial=1))
    pairs = neighbours_of(array.shape, axis, orders)
    rows = Rows(numbers, weight.scales.reshape(shape[:2]), reach, pairs)
    codes = compensated(rows, nearest, operand)
    if codes is None:
        return None
    moved = (array.shape[axis], *np.delete(array.shape, axis).tolist())
    found = np.moveaxis(codes.reshape(moved), 0, axis).astype(weight.codes.dtype)
    return np.ascontiguousarray(found)


def readers_of(products: Sequence[tuple[Node, int]]) -> dict[Value, list[Node]]:
    """Return the products that read each weight, of those that sum over the same axis of it.

    Args:
        products: nodes, each with the axis of its weight that the result has.
    """
    axes, found = dict[Value, set[int]](), defaultdict[Value, list[Node]](list)
    for node, axis in products:
        weight = node.given(1)
        axes.setdefault(weight, set()).add(axis)
        found[weight].append(node)
    return {weight: nodes for weight, nodes in found.items() if len(axes[weight]) == 1}
