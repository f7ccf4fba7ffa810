"""The pattern language: laws written as operator calls, checked against `onnx.defs` at import.

    op.Reshape(op.Reshape(var.x, ...), var.shape)

Patterns are written in the newest opset form of each operator and are strict: an attribute that is
not named must have its schema default, operands must agree in number, and values inside the match
must have no other user. Loosening is spelled out: `...`, `opt.bias`, `attrs=...`, `.shared()`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tiered.graph.core.schema import Schema, attributes_of, input_names, operators_of, schema_of
from tiered.rewriter.pattern import (
    Alternatives,
    Anything,
    Chain,
    Const,
    OpPattern,
    Opt,
    Pattern,
    PatternError,
    Rest,
    VariablePattern,
    operator_text,
)
from tiered.support.amounts import counted
from tiered.support.errors import did_you_mean


class Operator:
    """`op.Cast`: an operator before it is called; `op.Add | op.Sub` is either of two."""

    __slots__ = ("keys",)

    def __init__(self, *keys: tuple[str, str]) -> None:
        for domain, op_type in keys:
            if not domain and schema_of(op_type, domain) is None:
                close = did_you_mean(op_type, operators_of(domain))
                raise PatternError(f"onnx has no operator {op_type!r}{close}")
        self.keys = keys

    def __or__(self, other: Any) -> Operator:
        if not isinstance(other, Operator):
            return NotImplemented
        return Operator(*self.keys, *other.keys)

    def __call__(self, *operands: Any, attrs: Any = None, **attributes: Any) -> Any:
        """Return the pattern of a call: an `OpPattern`, of several operators the `Alternatives`.

        Args:
            operands: patterns, numbers, arrays or `...`.
            attrs: `...` admits any further attributes, unless the call of a local function decides
                one; "ignored" admits those too, for a rewrite that reads none or copies all.
            attributes: each a value, a variable, a predicate or `...`.

        Raises:
            PatternError: the newest schema of the operator does not allow it.
        """
        if attrs not in (None, ..., "ignored"):
            raise PatternError(f'{self}: attrs is ... or "ignored", not {attrs!r}')
        made = [
            check_op(
                OpPattern(
                    op_type,
                    domain,
                    tuple(map(pattern_of, operands)),
                    tuple((name, _attribute(value)) for name, value in attributes.items()),
                    any_attributes=attrs is not None,
                    ignores_attributes=attrs == "ignored",
                )
            )
            for domain, op_type in self.keys
        ]
        return made[0] if len(made) == 1 else Alternatives(tuple(made))

    def __repr__(self) -> str:
        return " | ".join(map(operator_text, self.keys))


class Operators:
    """`op.Conv(...)`; `op("com.microsoft").Gelu(...)` for another domain."""

    def __init__(self, domain: str = "") -> None:
        self._domain = "" if domain == "ai.onnx" else domain

    def __call__(self, domain: str) -> Operators:
        return Operators(domain)

    def __getattr__(self, op_type: str) -> Any:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return Operator((self._domain, op_type))


class Names:
    """`var.x`: patterns by attribute access."""

    def __init__(self, kind: Callable[[str], Pattern]) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kind(name)


def const(expected: Any = None, *, rtol: float = 0.0, name: str = "") -> Const:
    """Return the pattern of a constant.

    Args:
        expected: a number or nested list that the constant must equal exactly, rounded to its own
            dtype and with as many elements (so a scalar fits shapes [] and [1]); -0.0 is not 0.0.
            An array must be equal in dtype and shape too. A predicate of the array. None for any.
        rtol: relative tolerance on `expected` as the dtype of the constant holds it, without an
            absolute one.
        name: binds the value, as a variable would.
    """
    if callable(expected):
        return Const(predicate=expected, name=name)
    if isinstance(expected, np.ndarray | np.generic):
        array = np.asarray(expected)
        return Const(_frozen(array.tolist()), rtol=rtol, name=name, dtype=array.dtype.name)
    return Const(_frozen(expected), rtol=rtol, name=name)


def chain(kinds: Operator, end: Any) -> Chain:
    """Return the pattern of one or more nodes, each the first operand of the next.

    `chain(op.Cast | op.Identity, var.x)` is as many of them as there are, down to x. Their
    attributes and other operands may be anything.
    """
    if not isinstance(kinds, Operator):
        raise PatternError(f"a chain is of operators, as in op.Cast | op.Identity, not of {kinds}")
    return Chain(kinds.keys, pattern_of(end))


op = Operators()
var = Names(VariablePattern)
opt = Names(Opt)
rest = Names(Rest)


def pattern_of(operand: Any) -> Pattern:
    """Return the pattern of an operand: a pattern, a number, an array or `...`."""
    if operand is ...:
        return Anything()
    if isinstance(operand, Pattern):
        return operand
    if isinstance(operand, bool | int | float):
        return Const(operand, is_literal=True)
    if isinstance(operand, np.ndarray):
        return const(operand)
    raise PatternError(f"{operand!r} is no operand; expected a pattern, a number, an array or ...")


def _frozen(expected: Any) -> Any:
    return tuple(map(_frozen, expected)) if isinstance(expected, list | tuple) else expected


def _attribute(value: Any) -> Any:
    if isinstance(value, Pattern) and not isinstance(value, VariablePattern):
        raise PatternError(f"{value} is no attribute: a value, var.name, a predicate or ...")
    return tuple(value) if isinstance(value, list) else value


# --- checks ---------------------------------------------------------------------------------------


def check_op(pattern: OpPattern) -> OpPattern:
    """Return the pattern, if the newest schema of its operator allows it.

    Raises:
        PatternError: it does not.
    """
    for operand in pattern.operands[:-1]:
        if isinstance(operand, Rest):
            raise PatternError(f"{Operator(pattern.key)}: {operand} may only be the last operand")
    _ = pattern.bound  # raises if one name has two kinds
    schema = schema_of(pattern.op_type, pattern.domain)
    if schema is None:
        return pattern
    _check_operands(pattern, schema)
    for name, value in pattern.attributes:
        if name not in attributes_of(schema):
            known = ", ".join(sorted(attributes_of(schema))) or "none"
            close = did_you_mean(name, attributes_of(schema))
            raise PatternError(
                f"{Operator(pattern.key)} has no attribute {name!r}; it has {known}{close}"
            )
        _check_attribute(pattern, name, value, schema)
    return pattern


def _check_operands(pattern: OpPattern, schema: Schema) -> None:
    operands = pattern.operands
    is_open = bool(operands) and isinstance(operands[-1], Anything | Rest)
    if len(operands) > schema.max_input or (len(operands) < schema.min_input and not is_open):
        names = ", ".join(input_names(schema))
        raise PatternError(
            f"{Operator(pattern.key)} takes {names}; the pattern "
            f"has {counted(len(operands), 'operand')}"
        )


_TYPES: dict[str, tuple[type, ...]] = {
    "INT": (int,),
    "FLOAT": (int, float),
    "STRING": (str, bytes),
    "INTS": (tuple,),
    "FLOATS": (tuple,),
    "STRINGS": (tuple,),
}


def _check_attribute(pattern: OpPattern, name: str, value: Any, schema: Schema) -> None:
    if value is ... or value is None or isinstance(value, VariablePattern) or callable(value):
        return
    declared: str = attributes_of(schema)[name].type.name
    types = _TYPES.get(declared)
    if types is not None and not isinstance(value, types):
        raise PatternError(
            f"{Operator(pattern.key)}: attribute {name!r} is {declared}, so never {value!r}"
        )
