"""The names of `tvm.relay.dataflow_pattern`: patterns of operators, over those of tiered.

    relu = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), is_constant()))
    relu.match(model)

`is_op` takes the names of TVM and of ONNX. An expression is a value: a `Value`, the only output of
a `Model` or of a ModelProto. A callback gets the matched value and returns the one that takes its
place; `graph.op` of the value's graph makes operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import onnx

from tiered.compat.tvm.patterns.callbacks import DFPatternCallback, rewrite
from tiered.compat.tvm.patterns.expression_matches import (
    Parts,
    call_of,
    find,
    partition_model,
)
from tiered.compat.tvm.patterns.operator_names import has_attribute, operators_of
from tiered.graph import Graph, Model, Node, Value
from tiered.rewriter import Pattern, const, op, rest, var
from tiered.support.errors import UsageError

__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "TupleGetItemPattern",
    "TuplePattern",
    "VarPattern",
    "WildcardPattern",
    "has_attr",
    "has_dtype",
    "has_shape",
    "is_constant",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]

Expression = Model | onnx.ModelProto | Graph | Node | Value


def variable(name: str) -> Pattern:
    """Return the pattern of any value, bound to a name."""
    made: Pattern = getattr(var, name)
    return made


class DFPattern:
    """A pattern of a value; patterns are called and combined as in TVM."""

    def __call__(self, *args: Any) -> CallPattern:
        raise UsageError(f"{type(self).__name__} is no operator: call is_op('nn.relu')")

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """Return the pattern of a call whose attributes have these values."""
        return AttrPattern(self, attrs)

    def has_shape(self, shape: Sequence[Any]) -> TypedPattern:
        """Return the pattern of a value with a shape; None is any dim."""
        return TypedPattern(self, shape=tuple(shape))

    def has_dtype(self, dtype: str) -> TypedPattern:
        """Return the pattern of a value with a dtype: "float32"."""
        return TypedPattern(self, dtype=dtype)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """Return the pattern with or without what is built on it: the longer one comes first."""
        return AltPattern(option_constructor(self), self)

    def match(self, expr: Expression) -> bool:
        """Return whether an expression matches."""
        return find(self, call_of(expr)) is not None

    def partition(
        self,
        expr: Expression,
        attrs: Mapping[str, str] | None = None,
        check: Callable[[Value], bool] = lambda value: True,
    ) -> Any:
        """Replace matches by calls of local functions, whose metadata has these attributes.

        Args:
            expr: a model: a `Model` is edited and returned, a ModelProto stays.
            attrs: metadata of the functions, beside `PartitionedFromPattern`.
            check: called with each matched value; a false result leaves it.
        """
        return partition_model(self, expr, dict(attrs or {}), check)

    def compiled(self, parts: Parts) -> Pattern:
        """Return the pattern of tiered; `parts` names its parts."""
        raise NotImplementedError

    @property
    def choices(self) -> tuple[DFPattern, ...]:
        """The alternatives: one of them matches."""
        return (self,)


class WildcardPattern(DFPattern):
    """Any value."""

    def compiled(self, parts: Parts) -> Pattern:
        return variable(parts.name_of(self))

    def redirect_to(self, pat: DFPattern) -> None:
        """Recursive patterns have no equivalent.

        Raises:
            UsageError: always.
        """
        raise UsageError("redirect_to makes a recursive pattern, which the matcher has not")


class VarPattern(DFPattern):
    """An input of the graph, of any or of one name."""

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    def compiled(self, parts: Parts) -> Pattern:
        def is_it(value: Value) -> bool:
            return value.is_graph_input and self.name in ("", value.name)

        return variable(parts.name_of(self)).where(is_it)


class ConstantPattern(DFPattern):
    """A constant."""

    def compiled(self, parts: Parts) -> Pattern:
        return const(name=parts.name_of(self))


class OperatorPattern(DFPattern):
    """An operator that is to be called.

    Args:
        names: its names, `Conv` or `com.microsoft::Gelu`; any of several.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __call__(self, *args: Any) -> CallPattern:
        return CallPattern(self, None if args == (None,) else args)

    def __or__(self, other: DFPattern) -> Any:
        if isinstance(other, OperatorPattern):
            return OperatorPattern((*self.names, *other.names))
        return super().__or__(other)

    def has_attr(self, attrs: Mapping[str, Any]) -> Any:
        raise UsageError("has_attr is of a call: is_op('nn.conv2d')(x, w).has_attr({...})")


class CallPattern(DFPattern):
    """A call of an operator.

    Args:
        op: the operator.
        args: patterns of all operands; None for any number of any operands.
    """

    def __init__(self, op: OperatorPattern, args: Sequence[Any] | None = None) -> None:
        self.op = op
        self.args = None if args is None else tuple(args)

    def compiled(self, parts: Parts) -> Pattern:
        operands = [] if self.args is not None else [...]
        for arg in self.args or ():
            several = isinstance(arg, TuplePattern)
            operands += arg.operands(parts) if several else [arg.compiled(parts)]
        name, made = parts.name_of(self), list[Any]()
        for each in self.op.names:
            domain, _, op_type = each.rpartition("::")
            builder = getattr(op(domain) if domain else op, op_type)
            made.append(builder(*operands, attrs="ignored").bind(name))
        found: Pattern = made[0]
        for other in made[1:]:
            found = found | other
        return found


class AltPattern(DFPattern):
    """Either of two patterns."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    @property
    def choices(self) -> tuple[DFPattern, ...]:
        return (*self.left.choices, *self.right.choices)

    def compiled(self, parts: Parts) -> Pattern:
        parts.same(self, self.choices)
        return self.left.compiled(parts) | self.right.compiled(parts)


class BiasOperator(OperatorPattern):
    """`nn.bias_add`: an Add, or the last operand of the Conv or Gemm that is its data."""

    def __call__(self, *args: Any) -> Any:
        added = CallPattern(self, args)
        inside = _with_bias(*args) if len(args) == 2 else None
        return added if inside is None else BiasPattern(added, inside, args[0])


class BiasPattern(AltPattern):
    """A bias that is added, or an operand of its product.

    Args:
        left, right: the two patterns.
        data: the product, as a part of the first one.
    """

    def __init__(self, left: DFPattern, right: DFPattern, data: DFPattern) -> None:
        super().__init__(left, right)
        self.data = data

    def compiled(self, parts: Parts) -> Pattern:
        parts.same(self.data, (*self.data.choices, *self.right.choices))
        return super().compiled(parts)


def _with_bias(data: Any, bias: Any) -> DFPattern | None:
    """Return the pattern of a product with a bias as its operand; None if it cannot have one."""
    if isinstance(data, AttrPattern):
        inside = _with_bias(data.pattern, bias)
        return None if inside is None else AttrPattern(inside, data.attrs)
    if not isinstance(data, CallPattern) or data.args is None or len(data.args) != 2:
        return None
    names = tuple(name for name in data.op.names if name in _BIASED)
    return CallPattern(OperatorPattern(names), (*data.args, bias)) if names else None


_BIASED: Final = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""The operators that take a bias as their third operand."""


class AttrPattern(DFPattern):
    """A call with some attributes."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        self.pattern, self.attrs = pattern, dict(attrs)

    @property
    def choices(self) -> tuple[DFPattern, ...]:
        return self.pattern.choices

    def compiled(self, parts: Parts) -> Pattern:
        parts.same(self, self.choices)

        def has_them(node: Node) -> bool:
            return all(has_attribute(node, name, value) for name, value in self.attrs.items())

        return self.pattern.compiled(parts).where(has_them)


class TypedPattern(DFPattern):
    """A value of a shape or a dtype."""

    def __init__(
        self, pattern: DFPattern, *, shape: tuple[Any, ...] | None = None, dtype: str = ""
    ) -> None:
        self.pattern, self.shape = pattern, shape
        self.dtype = None if not dtype else _DTYPES.get(dtype)
        if dtype and self.dtype is None:
            raise UsageError(f"has_dtype: there is no dtype {dtype!r} ({', '.join(_DTYPES)})")

    @property
    def choices(self) -> tuple[DFPattern, ...]:
        return self.pattern.choices

    def compiled(self, parts: Parts) -> Pattern:
        parts.same(self, self.choices)
        return self.pattern.compiled(parts).having(shape=self.shape, dtype=self.dtype)


class TuplePattern(DFPattern):
    """The operands of an operator that takes a tuple in TVM, such as concatenate.

    Args:
        fields: patterns of all of them; None for any.
    """

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = fields

    def operands(self, parts: Parts) -> list[Pattern]:
        """Return the patterns of the operands."""
        if self.fields is None:
            return [getattr(rest, parts.name_of(self))]
        return [field.compiled(parts) for field in self.fields]


class TupleGetItemPattern(DFPattern):
    """One output of a call with several."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple_value, self.index = tuple_value, index or 0

    @property
    def choices(self) -> tuple[DFPattern, ...]:
        return self.tuple_value.choices

    def compiled(self, parts: Parts) -> Pattern:
        parts.same(self, self.choices)
        call: Any = self.tuple_value.compiled(parts)
        made: Pattern = call.out(self.index)
        return made


_DTYPES: Final = {
    **{
        name: onnx.TensorProto.DataType.Value(name.upper())
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "bool": onnx.TensorProto.BOOL,
    "float16": onnx.TensorProto.FLOAT16,
    "float32": onnx.TensorProto.FLOAT,
    "float64": onnx.TensorProto.DOUBLE,
}


def wildcard() -> WildcardPattern:
    """Return the pattern of any value."""
    return WildcardPattern()


def is_op(op_name: str) -> OperatorPattern:
    """Return an operator to be called: `is_op("add")(x, y)`.

    The sum of `nn.bias_add` is a node, or the bias of the Conv or Gemm that is its first operand.

    Raises:
        UsageError: no operator has this name.
    """
    kind = BiasOperator if op_name == "nn.bias_add" else OperatorPattern
    return kind(operators_of(op_name))


def is_constant() -> ConstantPattern:
    """Return the pattern of a constant."""
    return ConstantPattern()


def is_var(name: str = "") -> VarPattern:
    """Return the pattern of an input of the graph."""
    return VarPattern(name)


def is_tuple(fields: Sequence[DFPattern] | None = None) -> TuplePattern:
    """Return the pattern of the operands of an operator that takes a tuple in TVM."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Return the pattern of one output of a call with several; the first one by default."""
    return TupleGetItemPattern(tuple_value, index)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern) -> AttrPattern:
    """Return the pattern of a call whose attributes have these values."""
    return pattern.has_attr(attrs)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> TypedPattern:
    """Return the pattern of a value with a shape; None is any dim."""
    return (pattern or wildcard()).has_shape(shape)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> TypedPattern:
    """Return the pattern of a value with a dtype."""
    return (pattern or wildcard()).has_dtype(dtype)


def match(pattern: DFPattern, expr: Expression) -> bool:
    """Return whether an expression matches."""
    return pattern.match(expr)


def partition(
    pattern: DFPattern,
    expr: Expression,
    attrs: Mapping[str, str] | None = None,
    check: Callable[[Value], bool] = lambda value: True,
) -> Any:
    """Return `pattern.partition(expr, attrs, check)`."""
    return pattern.partition(expr, attrs, check)


def as_entry(entry: Any) -> Any:
    """Return an entry of a pattern table with a pattern of tiered in place of one of TVM.

    Raises:
        UsageError: it is no name with a pattern, and at most a check.
    """
    if not isinstance(entry, tuple | list) or len(entry) not in (2, 3):
        raise UsageError(f"an entry of a pattern table is (name, pattern, check), not {entry!r}")
    name, pattern, *more = entry
    if not isinstance(pattern, DFPattern):
        return entry
    check = more[0] if more else None
    of_match = None if check is None else lambda match: bool(check(match.values[0]))
    return name, pattern.compiled(Parts()), of_match
