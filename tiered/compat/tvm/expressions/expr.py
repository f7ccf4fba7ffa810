"""The expressions of relay: constants, variables, calls, tuples and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from tiered.compat.tvm.patterns.operator_names import (
    attribute_names,
    operators_of,
    relay_name,
)
from tiered.compat.tvm.running.arrays import NDArray, array
from tiered.graph import Node, Value
from tiered.graph.core.dtypes import DataType
from tiered.support.errors import UsageError, did_you_mean


class TensorType(NamedTuple):
    """The shape and the dtype of a tensor."""

    shape: tuple[Any, ...]
    dtype: str = "float32"

    @staticmethod
    def of(value: Value) -> TensorType | None:
        """Return the type of a value, as far as it is known."""
        if value.shape is None or value.dtype is None:
            return None
        return TensorType(tuple(value.shape), DataType(value.dtype).numpy.name)


class Op:
    """An operator; two are equal if one of ONNX's operators is both.

    Attributes:
        name: by TVM, or by ONNX where TVM has none.
        operators: the operators of ONNX, as `Conv` or `com.microsoft::Gelu`.
        outputs: the number of its outputs.
    """

    def __init__(self, name: str, operators: Iterable[str] = (), outputs: int = 1) -> None:
        self.name = name
        self.operators = tuple(operators) or operators_of(name)
        self.outputs = outputs

    @staticmethod
    def of(node: Node) -> Op:
        """Return the operator of a node."""
        own = node.operator
        return Op(relay_name(node), (own,), len(node.outputs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and not set(self.operators).isdisjoint(other.operators)

    def __hash__(self) -> int:
        return hash(Op)  # equal ones may have different names

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Attrs(dict[str, Any]):
    """The attributes of a call by ONNX's names; `attrs.kernel_size` reads one by TVM's."""

    def __getattr__(self, name: str) -> Any:
        for own in attribute_names(name):
            if own in self:
                return self[own]
        raise AttributeError(f"the call has no attribute {name!r}{did_you_mean(name, self)}")


class Expr:
    """An expression: of a graph, or new.

    Attributes:
        values: the values of the graph that it is; empty for a new one.
    """

    values: tuple[Value | None, ...] = ()

    @property
    def checked_type(self) -> TensorType | None:
        """The type, as far as it is known."""
        value = self.values[0] if self.values else None
        return None if value is None else TensorType.of(value)

    def __repr__(self) -> str:
        return type(self).__name__

    def __add__(self, other: Any) -> Call:
        return Call(Op("add"), (self, other))

    def __sub__(self, other: Any) -> Call:
        return Call(Op("subtract"), (self, other))

    def __mul__(self, other: Any) -> Call:
        return Call(Op("multiply"), (self, other))

    def __truediv__(self, other: Any) -> Call:
        return Call(Op("divide"), (self, other))

    def __neg__(self) -> Call:
        return Call(Op("negative"), (self,))


class Var(Expr):
    """An input of a function."""

    def __init__(
        self, name_hint: str, type_annotation: TensorType | None = None, value: Value | None = None
    ) -> None:
        self.name_hint = name_hint
        self._annotation = type_annotation
        self.values = () if value is None else (value,)

    @property
    def type_annotation(self) -> TensorType | None:
        """The type that was declared."""
        return self._annotation if self._annotation is not None else self.checked_type

    def __repr__(self) -> str:
        return f"Var({self.name_hint})"


class Constant(Expr):
    """Numbers."""

    def __init__(self, data: Any, value: Value | None = None) -> None:
        self._data = data
        self.values = () if value is None else (value,)

    @property
    def data(self) -> NDArray:
        """The numbers, with `numpy()`."""
        (value,) = self.values or (None,)
        return array(self._data if value is None else value.const)


class Call(Expr):
    """A call of an operator.

    Args:
        op: the operator.
        args: the operands, None for an absent one; numbers are constants.
        attrs: the attributes by ONNX's names.
        type_args, span: accepted, and without effect.
        node: the node that it is, of a graph.

    Attributes:
        bodies_of: the node with the bodies of a new call; it gets the new operands.
        is_newest: whether operands and attributes are those of the operator's newest form, as the
            functions of relay have them; a graph of an older opset gets the form that it has.
    """

    def __init__(
        self,
        op: Op,
        args: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        type_args: object = None,
        span: object = None,
        *,
        node: Node | None = None,
    ) -> None:
        if not isinstance(op, Op):
            raise UsageError(f"a call is of an operator, relay.op.get('nn.relu'), not of {op!r}")
        self.op = op
        self.args = tuple(as_expr(arg) for arg in args)
        self.attrs = Attrs(attrs or {})
        self.node = node
        self.bodies_of: Node | None = None
        self.is_newest = False
        self.values = () if node is None else tuple(node.outputs)

    span: ClassVar[None] = None
    type_args: ClassVar[tuple[object, ...]] = ()

    def __getitem__(self, index: int) -> TupleGetItem:
        return TupleGetItem(self, index)

    def __repr__(self) -> str:
        return f"Call({self.op.name})"


class Tuple(Expr):
    """Several expressions: the outputs of a function, or the operands of concatenate."""

    def __init__(self, fields: Sequence[Expr]) -> None:
        self.fields = tuple(fields)


class TupleGetItem(Expr):
    """One output of a call with several."""

    def __init__(self, tuple_value: Expr, index: int) -> None:
        self.tuple_value, self.index = tuple_value, index
        at = tuple_value.values[index : index + 1]
        self.values = at if at and at[0] is not None else ()


class Function(Expr):
    """A function: its inputs and its result.

    Args:
        params: the inputs.
        body: the result; a Tuple of several.
        ret_type, type_params, attrs: accepted, and without effect.
    """

    def __init__(
        self,
        params: Sequence[Var],
        body: Expr,
        ret_type: object = None,
        type_params: object = None,
        attrs: object = None,
    ) -> None:
        self.params, self.body = tuple(params), body
        self.ret_type, self.type_params, self.attrs = ret_type, type_params, attrs

    @property
    def results(self) -> tuple[Expr, ...]:
        """The results, one or several."""
        return self.body.fields if isinstance(self.body, Tuple) else (self.body,)


_DTYPES: Final = {"float": "float32", "int": "int32"}


def var(
    name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32"
) -> Var:
    """Return a new input: `relay.var("x", shape=(1, 3), dtype="float32")`.

    Raises:
        UsageError: both a type and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise UsageError("relay.var takes a type or a shape, not both")
    if isinstance(type_annotation, str):
        type_annotation = TensorType((), type_annotation)
    if shape is not None:
        type_annotation = TensorType(tuple(shape), dtype)
    return Var(name_hint, type_annotation)


def const(value: Any, dtype: str | None = None) -> Constant:
    """Return a constant; numbers of Python are int32 and float32, as in TVM."""
    numbers = np.asarray(value)
    if dtype is None and isinstance(value, bool | int | float):
        dtype = {"f": "float32", "i": "int32"}.get(numbers.dtype.kind)
    if dtype is not None:
        numbers = numbers.astype(_DTYPES.get(dtype, dtype))
    return Constant(numbers)


def as_expr(given: Any) -> Any:
    """Return an operand as an expression: numbers and arrays are constants.

    Raises:
        UsageError: it is none.
    """
    if given is None or isinstance(given, Expr | Value):
        return given
    if isinstance(given, bool | int | float | np.ndarray | np.generic):
        return const(given)
    if isinstance(given, tuple | list):
        return Tuple([as_expr(each) for each in given])
    raise UsageError(f"an operand is an expression or a number, not {given!r}")


def elem_type(dtype: str) -> int:
    """Return the dtype of ONNX by its name in numpy.

    Raises:
        UsageError: there is none.
    """
    for kind in DataType:
        if kind.numpy.name == dtype:
            return int(kind)
    raise UsageError(f"there is no dtype {dtype!r}")
