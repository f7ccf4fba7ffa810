"""Arithmetic on values: `g * x` adds a Mul to a graph, so that rules read like their laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tiered.graph import DataType, Graph, Tensor, Value
from tiered.rewriter.idioms.dtype_ranges import holds
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.operator_calls import Operand

Term: TypeAlias = "Expr | float"
"""An operand of arithmetic: another expression, or a number of the same dtype."""

Given: TypeAlias = "Expr | Operand | Sequence[int]"
"""An operand of a new node; integers become an int64 list."""

_ALLOWZERO_SINCE = 14

_START_SINCE = 15
"""The opset in which Shape got its start and end."""
_BFLOAT16_SINCE = 20
"""The opset in which ConstantOfShape got bfloat16."""

_ALL = int(np.iinfo(np.int32).max)
"""An end beyond all axes."""


def _operand(given: Given) -> Operand:
    if isinstance(given, Expr):
        return given.value
    return np.array(given, np.int64) if isinstance(given, Sequence) else given


class Expr:
    """A value of a graph, and the nodes that arithmetic adds to it.

    Args:
        graph: the graph that gets the nodes.
        value: the value; one of a graph around is read from there.
        name: the name of the new nodes, made unique.
    """

    __slots__ = ("graph", "name", "value")

    def __init__(self, graph: Graph, value: Value, name: str) -> None:
        self.graph = graph
        self.value = value
        self.name = name

    # --- what it is -------------------------------------------------------------------------------

    @property
    def dtype(self) -> DataType:
        """The dtype.

        Raises:
            ModelError: it is unknown.
        """
        dtype = self.value.dtype
        if dtype is None:
            raise self.no_dtype()
        return DataType(dtype)

    def no_dtype(self) -> ModelError:
        """Return the error of an unknown dtype."""
        return ModelError(f"the dtype of {self.value.name!r} is unknown; expected a tensor type")

    @property
    def rank(self) -> int:
        """The number of axes.

        Raises:
            ModelError: it is unknown.
        """
        rank = self.value.rank
        if rank is None:
            raise ModelError(f"the rank of {self.value.name!r} is unknown; declare its shape")
        return rank

    # --- new nodes --------------------------------------------------------------------------------

    def of(self, value: Value) -> Expr:
        """Return another value as an expression in the same graph."""
        return Expr(self.graph, value, self.name)

    def call(self, op_type: str, *operands: Given, **attributes: Any) -> Expr:
        """Return the first output of a new node.

        Raises:
            ModelError: an operand is a number, and the dtype of another one is unknown.
        """
        if any(isinstance(each, float) for each in operands):
            for each in operands:
                if isinstance(each, Expr) and each.value.dtype is None:
                    raise each.no_dtype()
        made = self.graph.op.named(op_type)(*map(_operand, operands), name=self.name, **attributes)
        return self.of(made)

    def calls(
        self, op_type: str, *operands: Given, outputs: int, **attributes: Any
    ) -> tuple[Expr, ...]:
        """Return all outputs of a new node; there are at least two."""
        build = self.graph.op.named(op_type)
        made = build(*map(_operand, operands), outputs=outputs, name=self.name, **attributes)
        return tuple(map(self.of, made))

    def integers(self, numbers: Sequence[int]) -> Expr:
        """Return a constant int64 list."""
        return self.of(self.graph.constant(np.array(numbers, np.int64), f"{self.name}/axes"))

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Term) -> Expr:
        return self.call("Add", self, other)

    def __radd__(self, other: float) -> Expr:
        return self.call("Add", other, self)

    def __sub__(self, other: Term) -> Expr:
        return self.call("Sub", self, other)

    def __rsub__(self, other: float) -> Expr:
        return self.call("Sub", other, self)

    def __mul__(self, other: Term) -> Expr:
        return self.call("Mul", self, other)

    def __rmul__(self, other: float) -> Expr:
        return self.call("Mul", other, self)

    def __truediv__(self, other: Term) -> Expr:
        return self.call("Div", self, other)

    def __rtruediv__(self, other: float) -> Expr:
        return self.call("Div", other, self)

    def __pow__(self, other: Term) -> Expr:
        # An exponent may have another dtype, so that a number has none of its own.
        exponent = other if isinstance(other, Expr) else np.array(other, self.dtype.numpy)
        return self.call("Pow", self, exponent)

    def root(self, degree: float) -> Expr:
        """Return the root of numbers from 0 on; the slope at 0, which is Inf, counts as 0."""
        is_zero = self.equals(0.0)
        return is_zero.select(self.zeros(), is_zero.select(self.ones(), self) ** (1 / degree))

    def __neg__(self) -> Expr:
        return self.call("Neg", self)

    def __matmul__(self, other: Expr) -> Expr:
        return self.call("MatMul", self, other)

    # Comparisons are methods, as == of two expressions is whether they are one.

    def equals(self, other: Term) -> Expr:
        """Return self == other, elementwise."""
        return self.call("Equal", self, other)

    def less(self, other: Term) -> Expr:
        """Return self < other, elementwise."""
        return self.call("Less", self, other)

    def greater(self, other: Term) -> Expr:
        """Return self > other, elementwise."""
        return self.call("Greater", self, other)

    def negated(self) -> Expr:
        """Return the negation of booleans."""
        return self.call("Not", self)

    def both(self, other: Expr) -> Expr:
        """Return the conjunction of booleans."""
        return self.call("And", self, other)

    def either(self, other: Expr) -> Expr:
        """Return the disjunction of booleans."""
        return self.call("Or", self, other)

    def select(self, yes: Expr, no: Term) -> Expr:
        """Return `yes` where self holds, else `no`: an Inf that is not selected leaves no NaN."""
        return self.call("Where", self, yes, no)

    def cast(self, dtype: int) -> Expr:
        """Return the elements in another dtype; a cast back gives what was cast, if it was kept."""
        if self.value.dtype == dtype:
            return self
        node = self.value.producer
        if node is not None and node.is_op("Cast"):
            (before,) = node.reads
            if before.dtype == dtype and holds(self.dtype, int(dtype)):
                return self.of(before)
        return self.call("Cast", self, to=int(dtype))

    # --- movement ---------------------------------------------------------------------------------

    def shape(self) -> Expr:
        """Return the shape, int64 [rank]: a constant if all dims are known."""
        dims = self.value.static_shape
        return self.call("Shape", self) if dims is None else self.integers(dims)

    def sizes(self, start: int, end: int = _ALL) -> Expr:
        """Return the sizes of the axes from one up to another, int64."""
        if self.graph.opset() >= _START_SINCE:
            ends = {} if end == _ALL else {"end": end}
            return self.call("Shape", self, start=start, **ends)
        return self.call("Slice", self.call("Shape", self), [start], [end], [0])

    def dim(self, axis: int) -> Expr:
        """Return the size of one axis, int64 [1]."""
        size = self.value.dim(axis)
        if isinstance(size, int):
            return self.integers([size])
        return self.call("Gather", self.call("Shape", self), [axis], axis=0)

    def reshape(self, shape: Expr | Sequence[int]) -> Expr:
        """Return the elements in another shape; 0 and -1 are as in Reshape."""
        target = shape if isinstance(shape, Expr) else self.integers(shape)
        return self.call("Reshape", self, target)

    def reshape_as(self, other: Expr) -> Expr:
        """Return the elements in the shape of another value, which may have empty axes."""
        dims = other.value.static_shape
        if dims is not None and dims == self.value.static_shape:
            return self
        return self.reshape_exactly(other.shape())

    def reshape_exactly(self, shape: Expr) -> Expr:
        """Return the elements in a shape that may have empty axes; 0 and -1 have no meaning."""
        dims = shape.value.const
        is_plain = dims is not None and 0 not in dims
        if is_plain or self.graph.opset() < _ALLOWZERO_SINCE:
            return self.call("Reshape", self, shape)
        return self.call("Reshape", self, shape, allowzero=1)

    def transpose(self, perm: Sequence[int]) -> Expr:
        """Return the axes in another order."""
        if list(perm) == list(range(len(perm))):
            return self
        return self.call("Transpose", self, perm=list(perm))

    def unsqueeze(self, axes: Sequence[int]) -> Expr:
        """Return the value with more axes of size 1."""
        return self.call("Unsqueeze", self, self.integers(axes)) if axes else self

    def squeeze(self, axes: Sequence[int]) -> Expr:
        """Return the value without some axes of size 1."""
        return self.call("Squeeze", self, self.integers(axes)) if axes else self

    def sum(self, axes: Sequence[int] | None = None, *, keepdims: bool = True) -> Expr:
        """Return the sums along some axes; along all for None."""
        if axes is None:
            return self.call("ReduceSum", self, keepdims=int(keepdims))
        if not axes:
            return self
        return self.call("ReduceSum", self, self.integers(axes), keepdims=int(keepdims))

    def zeros(self) -> Expr:
        """Return zeros of the same shape and dtype."""
        return self.filled(0)

    def ones(self) -> Expr:
        """Return ones of the same shape and dtype."""
        return self.filled(1)

    def filled(self, number: float) -> Expr:
        """Return a number in the same shape and dtype."""
        return self.shape().full(number, self.dtype)

    def full(self, number: float, dtype: DataType) -> Expr:
        """Return a number in the shape that this int64 list is."""
        if dtype is DataType.BFLOAT16 and self.graph.opset() < _BFLOAT16_SINCE:
            return self.full(number, DataType.FLOAT).cast(dtype)
        value = Tensor.of(np.array([number], dtype.numpy))
        return self.call("ConstantOfShape", self, value=value)
