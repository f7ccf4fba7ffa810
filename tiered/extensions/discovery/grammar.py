"""The grammar: which operators, attributes and constants graphs are made of.

The operators come from the table of traits; what each of them needs is here. A step is an operator
that is applied to an expression, with everything else that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.extensions.discovery.expressions import Array, ExpressionTable, GrammarExpr
from tiered.graph.core.dtypes import DataType
from tiered.graph.queries.op_traits import (
    ARITHMETIC,
    BLOCKS,
    COMPARISONS,
    LOGIC,
    REDUCTIONS,
    SOFTMAXES,
    UNARY,
)

FLOAT, DOUBLE, HALF = int(DataType.FLOAT), int(DataType.DOUBLE), int(DataType.FLOAT16)
INT64, BOOL, INT8 = int(DataType.INT64), int(DataType.BOOL), int(DataType.INT8)
INT32: Final = int(DataType.INT32)

_OTHERWISE: Final = frozenset({"Cast", "CastLike", "Clip", "Dropout"})
"""Unary operators that get operands or attributes below."""
_RARE: Final = frozenset(
    {name for name in UNARY if name.endswith("h") and name != "Tanh"}
    | {"Acos", "Asin", "Atan", "Cos"}
    | {"Selu", "Shrink", "Swish", "ThresholdedRelu"}
    | {"Mish", "Celu", "Tan", "BitwiseNot"}
    | {"IsInf"}
)
"""Unary operators that are functions without laws of their own, as Exp is."""
_FOR_INTEGERS: Final = frozenset({"Abs", "Identity", "Neg", "Sign"})


@dataclass(frozen=True)
class Base:
    """The borders that graphs read.

    Attributes:
        name: of this start.
        borders: (name, dtype, shape); steps are applied to the first one and what is made of it.
    """

    name: str
    borders: tuple[tuple[str, int, tuple[int, ...]], ...]

    def leaves(self, table: ExpressionTable) -> list[GrammarExpr]:
        return [table.border(name, dtype, shape) for name, dtype, shape in self.borders]


BASES: Final = (
    Base("matrix", (("x", FLOAT, (2, 3)), ("y", FLOAT, (2, 3)), ("b", BOOL, (2, 3)))),
    Base("row", (("x", FLOAT, (2, 3, 5)), ("y", FLOAT, (5,)))),
    Base("ones", (("x", FLOAT, (1, 3, 1)), ("y", FLOAT, (2, 3, 5)))),
    Base("image", (("x", FLOAT, (1, 4, 2, 6)),)),
    Base("integers", (("x", INT64, (2, 3)), ("y", INT64, (2, 3)))),
    Base("bools", (("x", BOOL, (2, 3)), ("y", BOOL, (2, 3)), ("z", FLOAT, (2, 3)))),
    Base("column", (("x", FLOAT, (3, 1)), ("y", FLOAT, (3, 5)))),
    Base("number", (("x", FLOAT, ()), ("y", FLOAT, (2, 3)))),
)
"""Shapes of different sizes, so that no two dims are equal by chance."""


class GrammarStep(NamedTuple):
    """An operator, the operands beside the expression, and where the expression is among them."""

    op: str
    operands: tuple[GrammarExpr | None, ...]
    attributes: Mapping[str, Any]
    outputs: int = 1


class Grammar:
    """All steps from an expression.

    Args:
        table: where constants are kept.
        is_small: fewer constants and attributes, for graphs of many operators.
    """

    def __init__(self, table: ExpressionTable, *, is_small: bool = False) -> None:
        self._table = table
        self._is_small = is_small

    def steps(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        """Yield the steps from an expression with constants alone."""
        if x.dtype in (FLOAT, INT64):
            yield from self._arithmetic(x)
        if x.dtype == FLOAT:
            yield from self._functions(x)
            yield from self._sums(x)
            yield from self._products(x)
            if len(x.shape) == 4:
                yield from self._images(x)
        if x.dtype == BOOL:
            yield from self._logic(x)
        yield from self._casts(x)
        if x.dtype in (FLOAT, INT64, BOOL):
            yield from self._views(x)
            yield from self._moves(x)
            yield from self._joins(x)

    def pairs(self, x: GrammarExpr, y: GrammarExpr) -> Iterator[GrammarStep]:
        """Yield the steps that read two expressions, in this order."""
        if x.dtype == y.dtype:
            is_number = x.dtype in (FLOAT, INT64)
            if _broadcast(x.shape, y.shape) is not None:
                if is_number:
                    for op in (*ARITHMETIC, "Max", "Min"):
                        yield GrammarStep(op, (x, y), {})
                    for op in COMPARISONS[:3]:
                        yield GrammarStep(op, (x, y), {})
                if x.dtype == FLOAT:
                    yield GrammarStep("Pow", (x, y), {})
                if x.dtype == BOOL:
                    for op in LOGIC:
                        yield GrammarStep(op, (x, y), {})
            if x.shape == y.shape:
                for axis in _axes(x):
                    yield GrammarStep("Concat", (x, y), {"axis": axis})
            if x.dtype == FLOAT and _multiplies(x.shape, y.shape):
                yield GrammarStep("MatMul", (x, y), {})
        if x.dtype == BOOL and y.dtype == FLOAT and _broadcast(x.shape, y.shape) is not None:
            for number in (0.0, 1.0):
                yield GrammarStep("Where", (x, y, self._number(number, y)), {})
                yield GrammarStep("Where", (x, self._number(number, y), y), {})

    def triples(self, c: GrammarExpr, x: GrammarExpr, y: GrammarExpr) -> Iterator[GrammarStep]:
        """Yield the steps that read a condition and two branches."""
        if c.dtype == BOOL and x.dtype == y.dtype and c.shape == x.shape == y.shape:
            yield GrammarStep("Where", (c, x, y), {})

    # --- elementwise ---------------------------------------------------------------------------

    def _number(self, number: float, like: GrammarExpr) -> GrammarExpr:
        return self._table.constant(np.asarray(number, DataType(like.dtype).numpy))

    def _arithmetic(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        numbers: Sequence[float] = (
            (0, 1, -1, 2) if x.dtype == INT64 else (0.0, -0.0, 1.0, -1.0, 2.0, 0.3)
        )
        if self._is_small:
            numbers = (1, 2) if x.dtype == INT64 else (1.0, -1.0, 2.0)
        for number in numbers:
            c = self._number(number, x)
            for op in ("Add", "Mul", "Max", "Min"):
                yield GrammarStep(op, (x, c), {})
            yield GrammarStep("Sub", (x, c), {})
            yield GrammarStep("Sub", (c, x), {})
            if x.dtype == FLOAT or number not in (0, -1):
                yield GrammarStep("Div", (x, c), {})
            if x.dtype == FLOAT:
                yield GrammarStep("Div", (c, x), {})
                yield GrammarStep("Pow", (x, c), {})
            if number in (0, 1):
                for op in COMPARISONS:
                    yield GrammarStep(op, (x, c), {})
        if len(x.shape) > 0 and not self._is_small and x.shape[-1] > 1:
            row = np.arange(1, x.shape[-1] + 1).astype(DataType(x.dtype).numpy)
            for op in ARITHMETIC:
                yield GrammarStep(op, (x, self._table.constant(row)), {})
        if x.dtype == INT64:
            for op in sorted(_FOR_INTEGERS):
                yield GrammarStep(op, (x,), {})
            yield GrammarStep("Mod", (x, self._number(2, x)), {})

    def _functions(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        rare = {*_OTHERWISE, *_RARE, "Not", "IsInf"}
        for op in UNARY:
            if op not in rare and not (self._is_small and op in ("HardSwish", "Softsign", "Elu")):
                yield GrammarStep(op, (x,), {})
        zero, one, six = (self._number(number, x) for number in (0.0, 1.0, 6.0))
        yield GrammarStep("Clip", (x, zero, six), {})
        yield GrammarStep("Clip", (x, zero, None), {})
        yield GrammarStep("Clip", (x, None, one), {})
        if not self._is_small:
            yield GrammarStep("Clip", (x, self._number(-1.0, x), one), {})
            yield GrammarStep("LeakyRelu", (x,), {"alpha": 0.2})

    def _logic(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        yield GrammarStep("Not", (x,), {})
        for number in (False, True):
            for op in (*LOGIC, "Equal"):
                yield GrammarStep(op, (x, self._number(number, x)), {})
        zero, one, two = (
            self._table.constant(np.asarray(number, np.float32)) for number in (0, 1, 2)
        )
        for first, second in ((one, zero), (zero, one), (two, one)):
            yield GrammarStep("Where", (x, first, second), {})

    def _casts(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        to = {FLOAT: (DOUBLE, HALF, INT64, BOOL), INT64: (FLOAT, INT32, BOOL), BOOL: (FLOAT, INT64)}
        found = to.get(x.dtype, (FLOAT,))
        for dtype in found[:2] if self._is_small else (*found, x.dtype):
            yield GrammarStep("Cast", (x,), {"to": dtype})

    # --- moves ---------------------------------------------------------------------------------

    def _integers(self, *numbers: int) -> GrammarExpr:
        return self._table.constant(np.asarray(numbers, np.int64))

    def _views(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        shape, rank = x.shape, len(x.shape)
        for target in dict.fromkeys(_targets(shape)):
            yield GrammarStep("Reshape", (x, self._integers(*target)), {})
        for axis in dict.fromkeys((0, rank)) if rank < 4 else ():
            yield GrammarStep("Unsqueeze", (x, self._integers(axis)), {})
        for axis in [at for at, size in enumerate(shape) if size == 1][:2]:
            yield GrammarStep("Squeeze", (x, self._integers(axis)), {})
        if rank > 1 and not self._is_small:
            for axis in range(rank + 1):
                yield GrammarStep("Flatten", (x,), {"axis": axis})

    def _moves(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        shape, rank = x.shape, len(x.shape)
        for perm in _perms(rank)[: 2 if self._is_small else 6]:
            yield GrammarStep("Transpose", (x,), {"perm": perm})
        if rank < 4:
            yield GrammarStep("Expand", (x, self._integers(2, *shape)), {})
        if 1 in shape:
            wide = [3 if size == 1 else size for size in shape]
            yield GrammarStep("Expand", (x, self._integers(*wide)), {})
        for axis in _axes(x):
            size = shape[axis]
            repeats = [2 if at == axis else 1 for at in range(rank)]
            yield GrammarStep("Tile", (x, self._integers(*repeats)), {})
            yield from self._parts(x, axis, size)
        if x.dtype == FLOAT and rank > 1:
            for upper in (0, 1)[: 1 if self._is_small else 2]:
                yield GrammarStep("Trilu", (x,), {"upper": upper})

    def _parts(self, x: GrammarExpr, axis: int, size: int) -> Iterator[GrammarStep]:
        if size < 2:
            return
        spans = [(0, 1, 1), (1, size, 1), (size - 1, -size - 1, -1), (0, size, 2)]
        for start, end, step in spans[: 2 if self._is_small else 4]:
            operands = (start, end, axis, step)
            yield GrammarStep("Slice", (x, *(self._integers(each) for each in operands)), {})
        at = self._table.constant(np.asarray(0, np.int64))
        yield GrammarStep("Gather", (x, at), {"axis": axis})
        if not self._is_small:
            for indices in ([size - 1], [*range(1, size), 0], [*range(size)]):
                yield GrammarStep("Gather", (x, self._integers(*indices)), {"axis": axis})
        sizes = self._integers(1, size - 1)
        yield GrammarStep("Split", (x, sizes), {"axis": axis}, outputs=2)

    def _joins(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        rank = len(x.shape)
        for axis in _axes(x):
            yield GrammarStep("Concat", (x, x), {"axis": axis})
            if x.dtype == FLOAT:
                shape = [1 if at == axis else size for at, size in enumerate(x.shape)]
                zeros = self._table.constant(np.zeros(shape, np.float32))
                yield GrammarStep("Concat", (x, zeros), {"axis": axis})
                pads = [0] * (2 * rank)
                pads[rank + axis] = 1
                yield GrammarStep("Pad", (x, self._integers(*pads)), {})

    # --- sums and products -----------------------------------------------------------------------

    def _sums(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        ops = ("ReduceMax", "ReduceMean", "ReduceSum") if self._is_small else REDUCTIONS
        for axis in _axes(x):
            for keep in (0, 1):
                for op in ops:
                    yield GrammarStep(op, (x, self._integers(axis)), {"keepdims": keep})
        if len(x.shape) > 1:
            for op in ops:
                yield GrammarStep(op, (x, None), {"keepdims": 1})
                yield GrammarStep(op, (x, None), {"keepdims": 0})
        for axis in _axes(x):
            for op in SOFTMAXES[1:]:
                yield GrammarStep(op, (x,), {"axis": axis})
            if not self._is_small:
                yield GrammarStep("ArgMax", (x,), {"axis": axis})
                at = self._table.constant(np.asarray(axis, np.int64))
                yield GrammarStep("CumSum", (x, at), {})

    def _products(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        if len(x.shape) > 1:
            yield GrammarStep("MatMul", (x, self._weight((x.shape[-1], 4))), {})
            yield GrammarStep("MatMul", (self._weight((4, x.shape[-2])), x), {})
        if len(x.shape) == 2:
            weight, bias = self._weight((x.shape[1], 4)), self._weight((4,))
            yield GrammarStep("Gemm", (x, weight, bias), {})
        if len(x.shape) in (3, 4) and not self._is_small:
            vector = self._weight((x.shape[1],))
            ones = self._table.constant(np.ones(x.shape[1], np.float32))
            yield GrammarStep("BatchNormalization", (x, vector, vector, vector, ones), {})
        if len(x.shape) > 1 and x.shape[-1] > 1 and not self._is_small:
            scale = self._weight((x.shape[-1],))
            yield GrammarStep("LayerNormalization", (x, scale), {})

    def _images(self, x: GrammarExpr) -> Iterator[GrammarStep]:
        channels = x.shape[1]
        yield GrammarStep("Conv", (x, self._weight((3, channels, 1, 1))), {})
        yield GrammarStep("GlobalAveragePool", (x,), {})
        pool = {"kernel_shape": [1, 2], "strides": [1, 2]}
        yield GrammarStep("MaxPool", (x,), pool)
        yield GrammarStep("AveragePool", (x,), pool)
        if channels % 4 == 0 and x.shape[2] % 2 == x.shape[3] % 2 == 0:
            for op in sorted(BLOCKS):
                yield GrammarStep(op, (x,), {"blocksize": 2})

    def _weight(self, shape: Sequence[int]) -> GrammarExpr:
        """Return numbers without a pattern, the same ones for the same shape."""
        count = int(np.prod(shape))
        numbers = (np.arange(1, count + 1) * 7 % 11 + 1) / 8
        held: Array = numbers.astype(np.float32).reshape(tuple(shape))
        return self._table.constant(held)


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(tuple(one), tuple(other))
    except ValueError:
        return None


def _multiplies(one: Sequence[int], other: Sequence[int]) -> bool:
    return len(one) > 1 and len(other) > 1 and one[-1] == other[-2] and one[:-2] == other[:-2]


def _axes(x: GrammarExpr) -> tuple[int, ...]:
    """Return the first and the last axis."""
    rank = len(x.shape)
    return tuple(dict.fromkeys((0, rank - 1))) if rank else ()


def _perms(rank: int) -> list[list[int]]:
    """Return permutations: neighbours, the reverse, to the last axis and back."""
    found: dict[tuple[int, ...], None] = {}
    axes = [*range(rank)]
    for at in range(rank - 2, -1, -1):
        swapped = [*axes]
        swapped[at], swapped[at + 1] = swapped[at + 1], swapped[at]
        found[tuple(swapped)] = None
    if rank > 2:
        found[(*axes[1:], 0)] = None
        found[(axes[-1], *axes[:-1])] = None
        found[tuple(reversed(axes))] = None
    return [[*perm] for perm in found]


def _targets(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of views: flat, first dims merged, last dims merged, ones added."""
    count = int(np.prod(shape))
    if len(shape) != 1:
        yield (count,)
    if len(shape) == 1 and shape[0] % 2 == 0:
        yield (2, shape[0] // 2)
    if len(shape) > 2:
        yield (shape[0] * shape[1], *shape[2:])
        yield (*shape[:-2], shape[-2] * shape[-1])
    if len(shape) == 2:
        yield (shape[1], shape[0])
    if len(shape) < 4:
        yield (1, *shape)
        yield (*shape, 1)
    if 1 in shape:
        yield tuple(size for size in shape if size != 1)
